//go:build race

package verbs_test

const (
	raceEnabled = true
	raceBytes   = 2 << 20 // four times what leaves without waiting
)
