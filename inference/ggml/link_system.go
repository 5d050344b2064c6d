//go:build system_ggml

package ggml

// #cgo pkg-config: ggml
import "C"
