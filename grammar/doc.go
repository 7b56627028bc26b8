// Package grammar constrains generated text to a formal language: a GBNF grammar (the notation of
// llama.cpp) or a JSON Schema (draft 2020-12) becomes a byte-level pushdown automaton, and the
// automaton says which vocabulary tokens may come next.
//
// The contract:
//
//   - [ParseGBNF] and [FromJSONSchema] compile untrusted input. A construct that cannot be enforced is
//     refused with an error that names it; every size is bounded by one of the Max constants.
//   - A [Grammar] is immutable to its users and safe for concurrent use. [Grammar.Match] needs no model.
//   - A [Matcher] joins a grammar with a [Vocab]; a [State] is the position of one run. A State is used
//     by one goroutine at a time; States of one Matcher may be used concurrently.
//   - Everything works on bytes: a token may hold a part of a multi-byte character. A token is allowed
//     when some text of the language begins with the bytes so far followed by the token's bytes.
//     End-of-generation tokens are allowed exactly where the text is complete. Tokens without bytes
//     (control tokens) never are.
//
// # How it works
//
// A position is a set of (automaton state, call stack) pairs; stacks are shared linked frames and sets
// are interned, so that positions form a lazily built deterministic automaton whose byte transitions are
// remembered. The mask of a position is the union of the masks of its pairs. The tokens that a state
// accepts without returning from its rule do not depend on the stack: they are found once per automaton
// state by walking the vocabulary's trie, together with the trie nodes at which the rule returned; only
// the sub-tries below those nodes are walked again for a concrete stack.
package grammar

import "errors"

// Errors wrapped by what this package returns.
var (
	// ErrSyntax: the GBNF text, JSON or pattern is malformed.
	ErrSyntax = errors.New("syntax error")
	// ErrUnsupported: a well-formed construct that cannot be enforced.
	ErrUnsupported = errors.New("unsupported")
	// ErrLimit: a named limit of this package was exceeded.
	ErrLimit = errors.New("limit exceeded")
	// ErrEmpty: no text at all satisfies the grammar or schema.
	ErrEmpty = errors.New("nothing can match")
	// ErrRejected: a token or text that the grammar does not allow.
	ErrRejected = errors.New("rejected by the grammar")
)

// Limits on untrusted grammars and schemas. Exceeding one is an error that wraps [ErrLimit].
const (
	MaxSource     = 1 << 20 // bytes of GBNF or JSON Schema source
	MaxNesting    = 128     // nested groups in GBNF or in a pattern, nested values in a schema
	MaxRules      = 10000   // rules of a GBNF grammar
	MaxRepeat     = 2000    // a bound of {m,n} in GBNF and in patterns
	MaxStates     = 1 << 18 // automaton states of a GBNF grammar
	MaxStack      = 1024    // pending rule calls while matching: nesting of the generated text
	MaxAmbiguity  = 4096    // simultaneous parses of one text
	MaxLazyStates = 1 << 20 // automaton states that matching adds for a schema
	MaxDFA        = 1 << 16 // states of the automaton of one string or number constraint
	MaxTerms      = 20000   // distinct subschema combinations
	MaxShapes     = 256     // alternatives of one subschema after merging its keywords
	MaxProperties = 1000    // properties named by one object schema
	MaxItems      = 10000   // minItems, maxItems, length of prefixItems
	MaxLength     = 1 << 20 // minLength, maxLength
	MaxDigits     = 24      // digits before, and digits after, the decimal point of a number
)
