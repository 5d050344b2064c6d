//go:build !system_ggml

package ggml

import _ "github.com/ollama/ollama/ml/backend/ggml/ggml/src" // compiles ggml into the program
