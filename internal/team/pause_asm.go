//go:build (amd64 || arm64) && !purego

package team

// pause tells the core n times that this is a spin loop: it saves power, leaves a hyper-thread's sibling more room and
// makes leaving the loop cheap.
//
//go:noescape
func pause(n uint32)
