package sample

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseLogitBias reads "ID:BIAS,ID:BIAS,...", the form of a command-line flag.
// Errors wrap ErrConfig. Ids and values are checked by [Config.Validate].
func ParseLogitBias(text string) ([]Bias, error) {
	var out []Bias
	for item := range strings.SplitSeq(text, ",") {
		left, right, ok := strings.Cut(item, ":")
		if !ok {
			return nil, fmt.Errorf("%w: logit-bias %q: want ID:BIAS", ErrConfig, item)
		}
		id, err := parseID(left)
		if err != nil {
			return nil, fmt.Errorf("%w: logit-bias %q: %q is no token id", ErrConfig, item, left)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(right), 64)
		if err != nil {
			return nil, fmt.Errorf("%w: logit-bias %q: %q is no number", ErrConfig, item, right)
		}
		if len(out) == MaxLogitBiases {
			return nil, fmt.Errorf("%w: more than %d logit biases", ErrConfig, MaxLogitBiases)
		}
		out = append(out, Bias{ID: id, Value: value})
	}
	return out, nil
}

// ParseBreakers reads DRY sequence breakers as token ids: ";" between sequences,
// "," between ids. Errors wrap ErrConfig.
func ParseBreakers(text string) (*Breakers, error) {
	var seqs [][]int32
	for part := range strings.SplitSeq(text, ";") {
		var seq []int32
		for item := range strings.SplitSeq(part, ",") {
			id, err := parseID(item)
			if err != nil {
				return nil, fmt.Errorf("%w: dry-sequence-breakers %q: %q is no token id", ErrConfig, part, item)
			}
			seq = append(seq, id)
		}
		seqs = append(seqs, seq)
		if len(seqs) > MaxBreakers {
			break // NewBreakers names the limit
		}
	}
	return NewBreakers(seqs)
}

func parseID(text string) (int32, error) {
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	return int32(id), err
}
