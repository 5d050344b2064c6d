//go:build !race

package verbs_test

const (
	raceEnabled = false
	raceBytes   = 0 // no limit
)
