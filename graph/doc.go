// Package graph is the intermediate representation of one forward pass, and the passes over it.
//
//	model.Build ─▶ Fuse ─▶ Assign ─▶ NewPlan ─▶ (backend compiles) ─▶ Program
//
// A Graph is a list of nodes in execution order: a node reads values that earlier nodes made. Building is pure: no
// memory is allocated for tensors and nothing is computed. The topology is a function of Params alone; token ids,
// positions and KV cells are data that arrive at each run, so equal Params always give an equal graph and a compiled
// program serves every step of equal Params.
//
// Shapes are feature-major, [d, n] for n tokens of d features, and memory is token-major: the d features of one token
// lie together. Weights carry GGUF's [in, out] in their metadata and [out][in] in memory.
package graph
