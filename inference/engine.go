package inference

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"daisy/inference/chat"
	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/plan"
	"daisy/inference/tokenizer"
	"daisy/rdma"
)

// Engine is one rank of a loaded model.
type Engine struct {
	info        Info
	fingerprint string               // of the file
	tokens      *tokenizer.Tokenizer // rank 0
	ends        []int32              // rank 0: the tokens that end an answer
	template    *chat.Template       // rank 0
	harmony     bool                 // rank 0: the template is of that kind
	rank        *rank                // owned by the goroutine that serve runs on
	slots       []*slot              // likewise
	clock       int                  // likewise: counts sequences
	batch       step                 // likewise: reused by every step
	who         []*sequence          // likewise: the batch's outputs' sequences

	flights    []flight      // likewise
	wanted     chan int      // outputs of each flight, to the goroutine that collects logits
	collected  chan error    // its answer: the logits are there
	sampled    chan struct{} // they have been used
	prefilling []*slot       // likewise: room for the slots that still read their prompts

	ctx      context.Context // ends every collective
	cancel   context.CancelCauseFunc
	requests chan *sequence // to rank 0's loop
	follow   chan struct{}  // lets the loop of other ranks begin
	closing  chan struct{}  // Close was called
	done     chan struct{}  // the loop has ended and err is set
	err      error
	once     sync.Once
}

// Load reads this rank's shard of the model at path, or of Options.Source, and
// returns when all ranks of the group have theirs. Cancelling ctx ends the loading on all ranks, and so
// does an error on one of them. Whatever happens, the engine owns the group.
func Load(ctx context.Context, path string, opt Options) (*Engine, error) {
	if opt.Group == nil {
		opt.Group = rdma.Solo()
	} else if opt.Apart != nil {
		return nil, errors.New("a rank of a group cannot compute apart from it")
	}
	if opt.Source != nil {
		path = opt.Source.Name
	}
	e, err := load(ctx, path, opt)
	if err != nil {
		err = fmt.Errorf("loading %s: %w", filepath.Base(path), err)
		opt.Group.Abort(err)
		_ = opt.Group.Close()
		return nil, err
	}
	return e, nil
}

func load(ctx context.Context, path string, opt Options) (*Engine, error) {
	open := func() (*gguf.File, error) { return gguf.Open(path) }
	if opt.Source != nil {
		open = func() (*gguf.File, error) { return gguf.OpenSource(*opt.Source) }
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	arch, err := model.New(f)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		requests: make(chan *sequence),
		follow:   make(chan struct{}, 1),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
	}
	if err := e.describe(f, arch, opt); err != nil {
		return nil, err
	}
	p, err := planFor(f, arch, opt)
	if err != nil {
		return nil, err
	}
	if e.fingerprint, err = f.Fingerprint(); err != nil {
		return nil, err
	}
	if err := agree(ctx, e.fingerprint, e.info, p, opt); err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	ready := make(chan error)
	go e.run(ctx, f, arch, p, opt, ready) // Close waits for done
	if err := <-ready; err != nil {
		return nil, err
	}
	return e, nil
}

// maxSequences bounds what another machine may ask for.
const maxSequences = 64

// describe reads what people and callers want to know, and on rank 0 the text
// side of the model.
func (e *Engine) describe(f *gguf.File, arch model.Arch, opt Options) (err error) {
	p := arch.Params()
	name, ok := f.String("general.name")
	if !ok || name == "" {
		name = strings.TrimSuffix(filepath.Base(f.Path()), ".gguf")
	}
	e.info = Info{
		Name:          name,
		Architecture:  p.Name,
		FileBytes:     f.Size(),
		ContextLength: opt.Context,
		Rank:          opt.Group.Rank(),
		WorldSize:     opt.Group.WorldSize(),
		Threads:       opt.Threads,
	}
	for _, t := range f.Tensors() {
		e.info.Parameters += t.Elements()
	}
	if e.info.ContextLength == 0 {
		e.info.ContextLength = min(p.TrainedCtx, DefaultContext)
	}
	if e.info.ContextLength < 1 || e.info.ContextLength > p.TrainedCtx {
		return fmt.Errorf("context of %d: the model takes 1 to %d", e.info.ContextLength, p.TrainedCtx)
	}
	if opt.Sequences < 0 || opt.Sequences > maxSequences {
		return fmt.Errorf("%d sequences at once: at most %d", opt.Sequences, maxSequences)
	}
	if opt.Cache != CacheF16 && opt.Cache != CacheQ8 {
		return fmt.Errorf("KV cache of kind %d: %w", opt.Cache, ErrUnsupported)
	}
	if e.info.Threads == 0 {
		e.info.Threads = runtime.NumCPU()
	}
	if e.info.Threads < 0 || e.info.Threads > runtime.NumCPU() { // more would wait for each other, spinning
		return fmt.Errorf("%d threads: this machine has %d cores", e.info.Threads, runtime.NumCPU())
	}
	if e.info.Rank != 0 {
		return nil
	}
	if e.tokens, err = tokenizer.New(f); err != nil {
		return err
	}
	if n := e.tokens.VocabSize(); n > p.Vocab {
		return fmt.Errorf("the tokenizer has %d tokens, the model %d", n, p.Vocab)
	}
	for id := range int32(e.tokens.VocabSize()) {
		if e.tokens.IsEOG(id) {
			e.ends = append(e.ends, id)
		}
	}
	return e.readTemplate(f)
}

// planFor is the plan asked for, or else tensor parallelism over all ranks. All
// ranks come to the same result.
func planFor(f *gguf.File, arch model.Arch, opt Options) (plan.Plan, error) {
	shape, world := model.Shape(f, arch), opt.seat().World
	p := plan.Plan{}
	if opt.Plan != nil {
		p = *opt.Plan
	} else {
		all := plan.Part{Layers: plan.Range{Hi: shape.Layers}, Shares: opt.Shares}
		for r := range world {
			all.Ranks = append(all.Ranks, r)
			if opt.Shares == nil {
				all.Shares = append(all.Shares, 1)
			}
		}
		if len(all.Shares) != world {
			return p, fmt.Errorf("%d shares for %d ranks", len(all.Shares), world)
		}
		var err error
		if p, err = shape.Plan(all); err != nil {
			return p, err
		}
	}
	if err := p.Check(shape, world); err != nil {
		return p, err
	}
	if opt.Apart != nil && (len(p.Stages) > 1 || opt.Apart.Rank < 0 || opt.Apart.Rank >= world) {
		return p, fmt.Errorf("%+v of a plan of %d stages cannot compute apart", *opt.Apart, len(p.Stages))
	}
	return p, nil
}

// seat is whose part of the plan this process computes.
func (opt Options) seat() Seat {
	if opt.Apart != nil {
		return *opt.Apart
	}
	return Seat{opt.Group.Rank(), opt.Group.WorldSize()}
}

// run is the goroutine that owns ggml: it loads, then serves until Close or an
// error ends it.
func (e *Engine) run(ctx context.Context, f *gguf.File, arch model.Arch, p plan.Plan, opt Options, ready chan<- error) {
	if opt.Group.WorldSize() == 1 {
		// Not moved to another thread between two calls of ggml, whose first
		// worker is the thread that calls. With other ranks it waits for them
		// often, and a locked goroutine's waits cost a hand-over each.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	defer close(e.done)
	r, err := newRank(ctx, f, arch, p, opt, &e.info)
	if err != nil {
		e.err = err
		ready <- err
		return
	}
	defer r.close()
	e.rank = r
	for range r.mem.slots {
		e.slots = append(e.slots, &slot{id: len(e.slots)})
	}
	ready <- nil // the file belongs to load, which closes it now
	if r.group.Rank() == 0 {
		e.err = e.lead()
	} else {
		e.err = e.obey()
	}
	if e.err != nil && !errors.Is(e.err, ErrClosed) && !errors.Is(e.err, errFinished) {
		r.group.Abort(e.err)
	}
	_ = r.group.Close()
	e.cancel(e.err)
}

// newRank loads one rank's shard and allocates all it needs to compute: on the
// GPU where there is one that can compute all of the model, else on the CPU. It
// returns when all ranks are there.
func newRank(ctx context.Context, f *gguf.File, arch model.Arch, p plan.Plan, opt Options, info *Info) (*rank, error) {
	place, stage := model.PlaceOf(p, opt.seat().Rank)
	mates := p.Stages[stage].Ranks
	if opt.Apart != nil {
		mates = []int{0} // nobody but this process
	}
	team, err := opt.Group.Subset(mates)
	if err != nil {
		return nil, err
	}
	start := rank{arch: arch, plan: p, stage: stage, place: place, group: opt.Group, team: team}
	r := new(rank)
	*r, err = start, ErrUnsupported
	if gpu := ggml.NewGPU(); gpu != nil {
		err = r.load(ctx, f, gpu, opt, info)
	}
	if errors.Is(err, ErrUnsupported) {
		poll := 50 // ggml's own default
		if opt.SharedCores {
			poll = 0
		}
		var cpu *ggml.Backend
		if cpu, err = ggml.NewCPU(info.Threads, poll); err == nil {
			*r = start
			err = r.load(ctx, f, cpu, opt, info)
		}
	}
	if err != nil {
		_ = team.Close()
		return nil, err
	}
	if err := opt.Group.Barrier(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// load fills the rank with what it needs on b, which it owns from now on. After
// an error nothing is left of either.
func (r *rank) load(ctx context.Context, f *gguf.File, b *ggml.Backend, opt Options, info *Info) (err error) {
	r.backend = b
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	slots := max(1, opt.Sequences)
	besides := memoryBytes(r.arch.Params(), r.place, slots, info.ContextLength, opt.Cache.ggml())
	if r.weights, err = loadWeights(ctx, f, r.arch, r.place, b, besides, opt.Progress); err != nil {
		return err
	}
	if r.mem, err = newMemory(r.arch, r.place, b, slots, info.ContextLength, opt.Cache.ggml()); err != nil {
		return err
	}
	r.mem.Weights, r.mem.Joined = r.weights.tensors, r.weights.joined
	r.scratch = b.Memory().NewScratch()
	info.Backend, info.WeightBytes, info.CacheBytes = b.Name(), r.weights.bytes, int64(r.mem.cache)
	if info.Rank == 0 {
		r.logits = make([]float32, r.mem.outputs*r.arch.Params().Vocab)
		r.part = make([]float32, r.mem.outputs*r.arch.Params().Vocab)
	}
	// The largest step of one sequence, recorded now: memory that would be missing
	// later is missing now. Several at once may need a little more.
	n := min(maxBatch, info.ContextLength)
	_, err = r.record([]model.Run{{N: n, KV: info.ContextLength}}, min(n, r.mem.outputs))
	return err
}

// Info describes the loaded model.
func (e *Engine) Info() Info { return e.info }

// Done is closed when the engine has ended, by Close or because the group did.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Err is why the engine ended, nil while it runs; ErrClosed after Close.
func (e *Engine) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// Close ends all requests with ErrClosed, the other ranks' Follow if this is rank
// 0, and the group; it returns when all memory is free. A step that runs may end;
// one that waits for a rank which does not answer is cut off.
func (e *Engine) Close() error {
	e.once.Do(func() {
		close(e.closing)
		if e.info.Rank != 0 {
			e.cancel(ErrClosed) // it may be waiting for the leader's next step
			return
		}
		cut := time.AfterFunc(closeGrace, func() { e.cancel(ErrClosed) })
		<-e.done
		cut.Stop()
	})
	<-e.done
	return nil
}

// closeGrace is how long Close lets a running step go on.
const closeGrace = 2 * time.Second
