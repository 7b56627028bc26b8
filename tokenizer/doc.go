// Package tokenizer turns text into token ids and back, with the vocabulary
// and rules that a GGUF file carries.
//
// It implements byte-level BPE (tokenizer.ggml.model = "gpt2"). Text passes
// four steps:
//
//  1. special tokens are found and set aside (leftmost, longest match):
//     control tokens only when the caller owns the text and asks for it,
//     user-defined tokens always;
//  2. the rest is put into Unicode normal form C where the model's own
//     tokenizer does so;
//  3. it is cut into pieces by the pre-tokenizer that tokenizer.ggml.pre names
//     (see [Rules]), each a hand-written scanner whose time is linear in the
//     text;
//  4. the bytes of each piece are merged by rank, in O(n log n) for a piece of
//     n bytes.
//
// Loading is strict: an unknown or missing pre-tokenizer, an empty merge
// table, a missing byte token or another tokenizer model is refused with an
// error that names the file, the key and the value. Nothing falls back to a
// similar rule, because a wrong split degrades a model without any sign.
//
// Character classes are those of Unicode 16.0, the version that the reference
// tokenizers use. Code points assigned later count as unassigned unless the Go
// standard library already knows them.
//
// Bytes that are no valid UTF-8 are kept: each such byte is encoded as itself,
// and for splitting it counts as one U+FFFD (a symbol). Encoding never fails
// and never panics.
//
// A [Tokenizer] is immutable and safe for concurrent use; a [Decoder] belongs
// to one stream.
package tokenizer
