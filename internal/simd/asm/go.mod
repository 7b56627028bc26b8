module github.com/minfer-go/minfer/internal/simd/asm

go 1.26
