// Package builtin holds the model that every minfer carries: "tiny", 3.3 M parameters of the qwen3 architecture in Q8_0,
// trained from scratch on synthetic text. It tells short stories and answers a few kinds of simple questions: a
// demonstration and a test model, not an assistant.
package builtin

import _ "embed" // the model file

// Name is the name under which the model can be given wherever a model is named.
const Name = "tiny"

//go:embed tiny.gguf
var tiny []byte

// Tiny is the GGUF file. It must not be changed.
func Tiny() []byte { return tiny }
