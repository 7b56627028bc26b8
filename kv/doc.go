// Package kv keeps the books of the key/value cache: which cells each sequence's positions live in.
//
// # Contract
//
// A cell is one row of K and one of V in every layer of a backend's cache; this package knows only its number. An [Arena]
// owns the cells [0, n). A [Seq] holds positions [0, Len()), each in one cell. Cells are reference-counted: a sequence
// that shares another's prefix points at the same cells, and its new positions always get cells of their own. Positions
// are logical: nothing may depend on where a cell lies.
//
// Bytes belong to the backend. The one operation that changes what cells hold, [Seq.Remove], returns the copies and
// rotations that the backend has to carry out.
//
// # Placement
//
// Any free cell serves any position, so that n free cells always admit n positions. Within that freedom, placement aims
// at long runs, and at cells with cell%TileCells == position%TileCells, since kernels read K in tiles of TileCells cells:
// 16 consecutive positions then fill one tile. A growing sequence holds a few free tiles after its last cell; others stay
// out of them while there is room elsewhere, so that sequences that grow in turn each keep a run of their own. Holds are
// hints: they count as free and are taken when nothing better is left.
//
// # Caveats
//
// Nothing here is safe for concurrent use: an arena and its sequences have one owner. Arguments out of range and uses of
// a freed sequence are errors, or documented as doing nothing; nothing panics.
package kv
