package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strftime formats a time as Python's datetime.strftime does on Linux in the C
// locale, for a time without a zone: so %z and %Z are empty.
func strftime(vm *machine, t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		vm.fits(b.Len())
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		start := i
		i++
		flag := byte(0)
		upper, swap := false, false
		for i < len(format) && strings.IndexByte("-_0^#", format[i]) >= 0 {
			switch format[i] {
			case '^':
				upper = true
			case '#':
				swap = true
			default:
				flag = format[i]
			}
			i++
		}
		width := 0
		for i < len(format) && isDigit(format[i]) && width < 1000 {
			width = width*10 + int(format[i]-'0')
			i++
		}
		if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++
		}
		if i == len(format) {
			b.WriteString(format[start:])
			break
		}
		s, ok := timeField(vm, t, format[i], flag, width)
		if !ok {
			b.WriteString(format[start : i+1])
			continue
		}
		switch {
		case upper || swap && strings.IndexByte("aAbBh", format[i]) >= 0:
			s = strings.ToUpper(s)
		case swap && format[i] == 'p':
			s = strings.ToLower(s)
		}
		b.WriteString(s)
	}
	return b.String()
}

// padNumber writes a number at least so wide: flag "-" takes no padding, "_"
// blanks, "0" zeros; width overrides the usual one.
func padNumber(n, digits int, pad, flag byte, width int) string {
	s := strconv.Itoa(n)
	switch flag {
	case '-':
		pad, digits = 0, 0
	case '_':
		pad = ' '
	case '0':
		pad = '0'
	}
	if width > digits && pad != 0 {
		digits = width
	}
	for len(s) < digits {
		s = string(pad) + s
	}
	return s
}

func timeField(vm *machine, t time.Time, c, flag byte, width int) (string, bool) {
	num := func(n, digits int) (string, bool) { return padNumber(n, digits, '0', flag, width), true }
	blank := func(n, digits int) (string, bool) { return padNumber(n, digits, ' ', flag, width), true }
	word := func(s string) (string, bool) {
		if pad := width - len(s); pad > 0 {
			fill := " "
			if flag == '0' {
				fill = "0"
			}
			s = strings.Repeat(fill, pad) + s
		}
		return s, true
	}
	sub := func(f string) (string, bool) { return word(strftime(vm, t, f)) }
	hour12 := (t.Hour()+11)%12 + 1
	week := func(first time.Weekday) int {
		return (t.YearDay() + 6 - (int(t.Weekday())-int(first)+7)%7) / 7
	}
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case 'a':
		return word(t.Weekday().String()[:3])
	case 'A':
		return word(t.Weekday().String())
	case 'b', 'h':
		return word(t.Month().String()[:3])
	case 'B':
		return word(t.Month().String())
	case 'c':
		return sub("%a %b %e %H:%M:%S %Y")
	case 'C':
		return num(t.Year()/100, 2)
	case 'd':
		return num(t.Day(), 2)
	case 'D', 'x':
		return sub("%m/%d/%y")
	case 'e':
		return blank(t.Day(), 2)
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), flag == 0 && width == 0
	case 'F':
		return sub("%Y-%m-%d")
	case 'g':
		return num(isoYear%100, 2)
	case 'G':
		return num(isoYear, 0)
	case 'H':
		return num(t.Hour(), 2)
	case 'I':
		return num(hour12, 2)
	case 'j':
		return num(t.YearDay(), 3)
	case 'k':
		return blank(t.Hour(), 2)
	case 'l':
		return blank(hour12, 2)
	case 'm':
		return num(int(t.Month()), 2)
	case 'M':
		return num(t.Minute(), 2)
	case 'n':
		return "\n", true
	case 'p':
		if t.Hour() < 12 {
			return word("AM")
		}
		return word("PM")
	case 'P':
		if t.Hour() < 12 {
			return word("am")
		}
		return word("pm")
	case 'r':
		return sub("%I:%M:%S %p")
	case 'R':
		return sub("%H:%M")
	case 's':
		return num(int(t.Unix()), 0)
	case 'S':
		return num(t.Second(), 2)
	case 't':
		return "\t", true
	case 'T', 'X':
		return sub("%H:%M:%S")
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1)
	case 'U':
		return num(week(time.Sunday), 2)
	case 'V':
		return num(isoWeek, 2)
	case 'w':
		return num(int(t.Weekday()), 1)
	case 'W':
		return num(week(time.Monday), 2)
	case 'y':
		return num(t.Year()%100, 2)
	case 'Y':
		return num(t.Year(), 0)
	case 'z', 'Z':
		return "", true
	case '%':
		return "%", true
	}
	return "", false
}
