// Package gguf reads and writes GGUF files: ordered metadata and tensors of block-quantized or plain numbers.
//
// # Reading
//
// [Open] maps a file, parses its header and indexes its tensors without touching their data, so a file of any size
// opens in the time its metadata needs. A model that was split into parts opens as one [File] from any of its parts.
// Versions 2 and 3 are read, little-endian.
//
// Files are untrusted. Every count, length and offset is held to a named limit and to the size of the file before
// anything is allocated for it; what is wrong is reported as an error that names the file and the key or tensor and
// wraps one of the sentinels below. Memory spent on a damaged file is bounded by a small multiple of its size.
//
// # Lifetimes
//
// The metadata is copied once, when the file is opened: keys, values, strings and tensor names are ordinary Go values,
// share that copy, and stay valid after [File.Close]. Tensor data is a view of the mapping (or of the slice given to
// [FromBytes]) and must not be used after Close. The file must not be shortened by others while it is open: reading a
// mapped page that is gone stops the process.
//
// A File is safe for concurrent use, except for Close.
//
// # Writing
//
// [Writer] writes version 3: metadata and tensor declarations first, then the tensors' bytes as a stream.
package gguf

import "errors"

// Errors in what a file says. Open, FromBytes and the Writer wrap them.
var (
	ErrMagic           = errors.New("not a GGUF file")
	ErrVersion         = errors.New("unsupported GGUF version")
	ErrTruncated       = errors.New("the file ends too early")
	ErrLimit           = errors.New("over the limit")
	ErrValueType       = errors.New("bad metadata type")
	ErrKey             = errors.New("bad metadata key")
	ErrDuplicateKey    = errors.New("duplicate metadata key")
	ErrAlignment       = errors.New("bad alignment")
	ErrTensorName      = errors.New("bad tensor name")
	ErrTensorType      = errors.New("unsupported tensor type")
	ErrTensorShape     = errors.New("bad tensor shape")
	ErrTensorOffset    = errors.New("bad tensor offset")
	ErrOverlap         = errors.New("overlapping tensors")
	ErrDuplicateTensor = errors.New("duplicate tensor")
	ErrSplit           = errors.New("bad split file")
	ErrNotRegular      = errors.New("not a regular file")
)

// Errors of the typed getters of [File].
var (
	ErrMissingKey = errors.New("metadata key is missing")
	ErrKeyType    = errors.New("metadata value has another type")
)

// Limits on what a file may hold. Each is far above what models use; a file beyond one is refused with [ErrLimit]
// (or [ErrAlignment]) before memory is spent on it.
const (
	MaxKeys      = 1 << 16 // metadata keys
	MaxKeyLen    = 1<<16 - 1
	MaxStringLen = 1 << 26 // bytes of one string
	MaxArrayLen  = 1 << 24 // elements of one array
	MaxDepth     = 4       // arrays within arrays, the outermost counted
	MaxTensors   = 1 << 16 // tensors of one part
	MaxNameLen   = 64      // bytes of a tensor name
	MaxDims      = 4
	MaxElements  = 1 << 40 // elements of one tensor
	MaxParts     = 1 << 10 // parts of a split model
	MinAlignment = 8
	MaxAlignment = 1 << 20
)

const (
	magic            = "GGUF"
	versionWritten   = 3
	defaultAlignment = 32
	alignmentKey     = "general.alignment"
	splitNoKey       = "split.no"
	splitCountKey    = "split.count"
	splitTensorsKey  = "split.tensors.count"
)

// alignUp returns the next multiple of alignment, a power of two. n must be far from the top of its range.
func alignUp(n, alignment uint64) uint64 { return (n + alignment - 1) &^ (alignment - 1) }
