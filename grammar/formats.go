package grammar

import "sync"

var (
	formatMu   sync.Mutex
	formatDFAs = map[string]*dfa{}
)

// formatDFA returns the automaton of a format, built once per process.
func formatDFA(name, src string) (*dfa, error) {
	formatMu.Lock()
	defer formatMu.Unlock()
	if d := formatDFAs[name]; d != nil {
		return d, nil
	}
	d, err := patternDFA(src)
	if err == nil {
		formatDFAs[name] = d
	}
	return d, err
}

// formats maps the enforced values of format to the pattern of their strings. Dates and times follow
// RFC 3339; a leap second is accepted at 23:59:60 UTC written with a zero offset. Mail addresses are
// those of RFC 5321.
var formats = map[string]string{
	"date":      "^" + datePattern + "$",
	"time":      "^" + timePattern + "$",
	"date-time": "^" + datePattern + "[Tt]" + timePattern + "$",
	"uuid":      "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
	"ipv4":      "^" + ipv4Pattern + "$",
	"ipv6":      "^(?:" + ipv6Pattern + ")$",
	"hostname":  "^" + hostPattern + "$",
	"email":     "^(?:" + localPattern + `|"(?:[ !#-\[\]-~]|\\[ -~])*")@(?:` + hostPattern + `|\[(?:` + ipv4Pattern + `|IPv6:(?:` + ipv6Pattern + `))\])$`,
	"duration": "^P(?:(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)(?:" + clockDuration + ")?|" +
		clockDuration + "|[0-9]+W)$",
	"json-pointer": "^(?:/(?:[^/~]|~[01])*)*$",
}

const (
	leapYear    = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
	datePattern = "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
		leapYear + "-02-29)"
	timePattern = `(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[-+](?:[01][0-9]|2[0-3]):[0-5][0-9])|` +
		`23:59:60(?:\.[0-9]{1,9})?(?:[Zz]|[-+]00:00))`
	clockDuration = "T(?:[0-9]+S|[0-9]+M(?:[0-9]+S)?|[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?)"

	byteDecimal = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
	ipv4Pattern = byteDecimal + `(?:\.` + byteDecimal + "){3}"

	hextet      = "[0-9a-fA-F]{1,4}"
	ipv6Tail    = "(?:" + hextet + ":" + hextet + "|" + ipv4Pattern + ")"
	ipv6Pattern = "(?:" + hextet + ":){6}" + ipv6Tail +
		"|::(?:" + hextet + ":){5}" + ipv6Tail +
		"|(?:" + hextet + ")?::(?:" + hextet + ":){4}" + ipv6Tail +
		"|(?:(?:" + hextet + ":){0,1}" + hextet + ")?::(?:" + hextet + ":){3}" + ipv6Tail +
		"|(?:(?:" + hextet + ":){0,2}" + hextet + ")?::(?:" + hextet + ":){2}" + ipv6Tail +
		"|(?:(?:" + hextet + ":){0,3}" + hextet + ")?::" + hextet + ":" + ipv6Tail +
		"|(?:(?:" + hextet + ":){0,4}" + hextet + ")?::" + ipv6Tail +
		"|(?:(?:" + hextet + ":){0,5}" + hextet + ")?::" + hextet +
		"|(?:(?:" + hextet + ":){0,6}" + hextet + ")?::"

	label        = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
	hostPattern  = label + `(?:\.` + label + ")*"
	atom         = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
	localPattern = atom + `(?:\.` + atom + ")*"
)
