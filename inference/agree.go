package inference

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"daisy/inference/plan"
)

// ErrOtherModel: a rank has another file under the model's name.
var ErrOtherModel = errors.New("another model file")

// agree compares what all ranks must have alike before they load: the file, the
// context and the plan. The error names the first rank that differs from 0.
func agree(ctx context.Context, print string, info Info, p plan.Plan, opt Options) error {
	world := opt.Group.WorldSize()
	if world == 1 {
		return nil
	}
	own, err := hex.DecodeString(print)
	if err != nil || len(own) != sha256.Size {
		return fmt.Errorf("fingerprint %q is no SHA-256", print)
	}
	own = binary.LittleEndian.AppendUint64(own, uint64(info.ContextLength))
	own = binary.LittleEndian.AppendUint64(own, uint64(max(1, opt.Sequences)))
	own = binary.LittleEndian.AppendUint64(own, uint64(opt.Cache))
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	dealt := sha256.Sum256(text)
	own = append(own, dealt[:]...)
	all := make([]byte, world*len(own))
	if err := opt.Group.AllGather(ctx, all, own); err != nil {
		return err
	}
	for r := 1; r < world; r++ {
		theirs := all[r*len(own):][:len(own)]
		if !bytes.Equal(theirs[:sha256.Size], all[:sha256.Size]) {
			return fmt.Errorf("rank %d has %w than rank 0", r, ErrOtherModel)
		}
		if !bytes.Equal(theirs, all[:len(own)]) {
			return fmt.Errorf("rank %d was asked for another context, number of sequences, KV cache or plan than rank 0", r)
		}
	}
	return nil
}
