package chat

import "errors"

// Errors wrapped by what this package returns.
var (
	// ErrTemplate: the template cannot be compiled or rendered. The wrapped [jinja.Error] tells line and construct.
	ErrTemplate = errors.New("chat template error")
	// ErrMessage: a message, tool or variable of the request is not usable.
	ErrMessage = errors.New("bad chat message")
)
