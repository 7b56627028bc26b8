package sample

import "errors"

// Errors of this package. Each is wrapped with the knob, token or length it is
// about; test with errors.Is.
var (
	// ErrConfig reports a knob with a value outside its range, or a stop string
	// or DRY breaker that cannot be used.
	ErrConfig = errors.New("invalid sampling setting")
	// ErrShape reports a row of logits whose length is not the vocabulary size.
	ErrShape = errors.New("wrong number of logits")
	// ErrNaN reports a logit that is not a number.
	ErrNaN = errors.New("logit is not a number")
	// ErrNoCandidate reports a row in which every logit is -Inf (after bans).
	ErrNoCandidate = errors.New("every token is excluded")
	// ErrNoAllowedToken reports that the grammar allows none of the tokens that
	// are not excluded otherwise.
	ErrNoAllowedToken = errors.New("the grammar allows no token")
	// ErrState reports a sampler state that cannot be restored.
	ErrState = errors.New("invalid sampler state")
)
