package inference

import (
	"os"
	"testing"

	"daisy/inference/gguf"
)

// long skips what takes minutes; make test-long runs it, without the race detector.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("DAISY_TEST_LONG") == "" {
		t.Skip("takes minutes: DAISY_TEST_LONG=1")
	}
}

func TestLongSeeded(t *testing.T) {
	long(t)
	path := seeded(t, gguf.F32)
	checkRight(t, path, manyPlans(t, path), inF32, 16, 10, 1000, 5000)
}
