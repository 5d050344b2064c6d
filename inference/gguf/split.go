package gguf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// Keys that a split model carries in each part.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

var splitName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// SplitPaths returns the paths of all parts of the model that path belongs to, by its name alone: path itself, unless
// it ends in -00001-of-00003.gguf or the like.
func SplitPaths(path string) []string {
	m := splitName.FindStringSubmatch(path)
	if m == nil {
		return []string{path}
	}
	n, _ := strconv.Atoi(m[3])
	if n < 1 || n > MaxParts {
		return []string{path}
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3])
	}
	return out
}

// openOtherParts opens the further parts of the split model whose first part f is, and takes their tensors in.
func (f *File) openOtherParts(path string, parse parse) error {
	count, ok := f.Uint(keySplitCount)
	if !ok || count <= 1 {
		return nil
	}
	paths := SplitPaths(path)
	if no, _ := f.Uint(keySplitNo); no != 0 {
		if len(paths) > 1 {
			return fmt.Errorf("%s: part %d of a split model, open its first part %s", path, no+1, filepath.Base(paths[0]))
		}
		return fmt.Errorf("%s: part %d of a split model, open its first part", path, no+1)
	}
	if uint64(len(paths)) != count || paths[0] != path {
		return fmt.Errorf("%s: first of %d parts, but not named like one (name-00001-of-%05d.gguf)", path, count, count)
	}
	return f.addParts(paths, func(i int) (*File, error) { return openPart(paths[i], parse) })
}

// addParts takes in the tensors of the parts after the first.
func (f *File) addParts(paths []string, open func(i int) (*File, error)) error {
	count := uint64(len(paths))
	if count == 1 {
		return nil
	}
	for i, p := range paths[1:] {
		other, err := open(i + 1)
		if err != nil {
			return fmt.Errorf("%w (part %d of %d)", err, i+2, count)
		}
		f.parts = append(f.parts, other.parts[0])
		no, _ := other.Uint(keySplitNo)
		n, _ := other.Uint(keySplitCount)
		if no != uint64(i+1) || n != count {
			return fmt.Errorf("%s: says it is part %d of %d, not %d of %d", p, no+1, n, i+2, count)
		}
		if len(f.tensors)+len(other.tensors) > 8*MaxTensors {
			return fmt.Errorf("%s: too many tensors over all parts", p)
		}
		for _, t := range other.tensors {
			if _, dup := f.byName[t.Name]; dup {
				return fmt.Errorf("%s: tensor %q is in an earlier part too", p, printable(t.Name))
			}
			t.Part = i + 1
			f.byName[t.Name] = len(f.tensors)
			f.tensors = append(f.tensors, t)
		}
	}
	if want, ok := f.Uint(keySplitTensors); ok && want != uint64(len(f.tensors)) {
		return fmt.Errorf("%s: says %d tensors in all parts, there are %d", paths[0], want, len(f.tensors))
	}
	return nil
}
