package server

import (
	"crypto/rand"
	"crypto/sha256"
	"time"
	"unicode/utf8"

	"github.com/minfer-go/minfer/chat"
)

const idAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newID is a random name.
func newID() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return spell(b[:])
}

func spell(b []byte) string {
	for i := range b {
		b[i] = idAlphabet[int(b[i])%len(idAlphabet)]
	}
	return string(b)
}

// mistralID is how long Mistral's templates want ids of calls.
const mistralID = 9

// newCallID is the id of a new call, in the form that the model's template takes back.
func newCallID(s chat.CallSyntax) string {
	if s == chat.MistralCalls {
		return newID()[:mistralID]
	}
	return "call_" + newID()
}

// callID is a client's id of a call in the form that the model's template takes. Equal ids stay equal.
func callID(s chat.CallSyntax, id string) string {
	if s != chat.MistralCalls || id == "" {
		return id
	}
	plain := len(id) == mistralID
	for _, c := range []byte(id) {
		plain = plain && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	if plain {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return spell(sum[:mistralID])
}

func now() int64 { return time.Now().Unix() }

// validText is bytes as text; what is no UTF-8 becomes U+FFFD.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}
