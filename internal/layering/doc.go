// Package layering holds the repository's rules about itself as tests: which package may import which, and how files
// look. It has no code of its own.
package layering
