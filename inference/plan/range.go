package plan

import (
	"encoding/json"
	"errors"
)

// Range is the half-open interval [Lo, Hi). In JSON it is [Lo, Hi].
type Range struct{ Lo, Hi int }

// Len is the number of elements.
func (r Range) Len() int { return r.Hi - r.Lo }

// Scale multiplies both ends: a range of heads becomes one of rows.
func (r Range) Scale(by int) Range { return Range{r.Lo * by, r.Hi * by} }

// Contains tells whether i lies in the range.
func (r Range) Contains(i int) bool { return r.Lo <= i && i < r.Hi }

// MarshalJSON writes [Lo, Hi].
func (r Range) MarshalJSON() ([]byte, error) { return json.Marshal([2]int{r.Lo, r.Hi}) }

// UnmarshalJSON reads [Lo, Hi]; both must be there.
func (r *Range) UnmarshalJSON(b []byte) error {
	var ends []int
	if err := json.Unmarshal(b, &ends); err != nil {
		return err
	}
	if len(ends) != 2 {
		return errors.New("a range has two ends")
	}
	*r = Range{ends[0], ends[1]}
	return nil
}
