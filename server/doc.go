// Package server answers HTTP requests with one model: the APIs of OpenAI, Anthropic and Ollama, health, metrics and a
// chat page.
//
// # Shape
//
// Each endpoint has a table of the fields it knows; a field that is in no table is refused by name, and so is a known one
// whose value cannot be honoured. What is left is translated to one task, the same for every API: prompt tokens, sampling,
// stop texts, constraint, tools. A run of a task gives events, and each API has an encoder that writes events in its own
// form, streamed or whole. Nothing else differs between the APIs.
//
// # Limits
//
// Bodies, messages, tools, choices and numbers are bounded by named constants. A prompt that does not fit the context is
// refused, never cut. When too many requests wait, further ones are refused with Retry-After. A client that goes away
// ends its work; one that reads slowly holds its own reply alone.
package server
