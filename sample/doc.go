// Package sample turns a row of logits into the next token.
//
// A [Sampler] runs one pipeline, always in this order; a stage at its neutral
// value is not run at all, so it cannot change a bit:
//
//	logit bias and bans → repeat, frequency and presence penalties → DRY →
//	grammar mask → greedy shortcut (temperature 0) → top-n-sigma → top-k →
//	locally typical → top-p → min-p → XTC → (dynamic) temperature → draw
//
// or, when mirostat is on, everything after the greedy shortcut is replaced by
// mirostat v1 or v2 and its own draw: its target surprise cannot be reached
// through another truncation, so the truncation filters and the temperature
// are not used then.
//
// # Ties
//
// Candidates are ordered by descending logit and, among equal logits, by
// ascending token id. Every stage that cuts an ordered list therefore keeps the
// lower ids of a tie; a stage that compares with a threshold (min-p,
// top-n-sigma, XTC, mirostat v2) treats equal logits alike.
//
// The draw walks the candidates in that order; when no stage has cut the row,
// it walks the whole row by ascending id.
//
// # Repeatable on every platform
//
// A seed and a sequence of logits give the same tokens on every architecture:
// the generator is xoshiro256**, exp and log are this package's own, and no
// product is left to be fused into a multiply-add. Per call of [Sampler.Sample]
// the generator advances once for XTC when that is on, and once for the draw;
// a greedy choice does not advance it.
//
// # Grammars
//
// A [Mask] stands for a grammar. The result is always the one that masking the
// logits first would give, for the same seed and bit for bit; the full mask is
// computed only when testing single tokens cannot settle the result (mask.go).
//
// [Stopper] finds stop strings in the produced text; [Scorer] gives log
// probabilities of the model's own distribution.
package sample
