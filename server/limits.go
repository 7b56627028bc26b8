package server

import "time"

// Limits of requests. One that exceeds a limit is refused with the limit's number.
const (
	DefaultMaxBody  = 32 << 20 // bytes of a request's body
	MaxMessages     = 4096     // messages of a conversation
	MaxTools        = 256      // tools of a request
	MaxVariables    = 256      // variables that a request gives to the template
	MaxChoices      = 128      // replies to one prompt
	MaxPrompts      = 128      // prompts of one completion request
	MaxInputs       = 2048     // inputs of one embedding request
	MaxTopLogprobs  = 20       // likeliest tokens reported for each position
	MaxCompileCache = 64       // compiled grammars kept
	maxHeaderBytes  = 64 << 10
	maxName         = 256 // bytes of a model's or user's name that is repeated in answers and logs
)

// Time limits.
const (
	readHeaderTimeout = 10 * time.Second
	readBodyTimeout   = time.Minute     // for a request's body to arrive
	writeTimeout      = 2 * time.Minute // for a client to take what was written
	idleTimeout       = 2 * time.Minute // of a connection between requests
	keepAlive         = 10 * time.Second
	opTimesPatience   = 50 * time.Millisecond // how long a scrape waits for a busy engine
)
