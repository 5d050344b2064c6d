package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"daisy/app/history"
	"daisy/inference"
	"daisy/inference/sample"
)

// Errors that callers tell apart.
var (
	// ErrNoModel: nothing is loaded that could answer; load a model first.
	ErrNoModel = errors.New("no model is loaded")
	// ErrBusy: the conversation is being answered; wait or stop it.
	ErrBusy = errors.New("this conversation is being answered already")
	// ErrClosed: the session has ended.
	ErrClosed = errors.New("the session is closed")
)

// finishTimeout bounds the last write of an answer whose own context is over.
const finishTimeout = 5 * time.Second

// Asker answers requests: a cluster, or an engine on this machine.
type Asker interface {
	// Chat blocks until the answer is complete. It calls emit in order, and
	// returns what was measured so far also on errors.
	Chat(ctx context.Context, request inference.Request, emit func(inference.Delta)) (inference.Stats, error)
}

// Config of a Session.
type Config struct {
	Store     *history.Store
	System    string        // system prompt; may be empty
	Sampling  sample.Params // for every answer
	MaxTokens int           // per answer; 0: as long as the context allows
}

// Session asks the model that is in use and writes the history.
type Session struct {
	cfg Config
	wg  sync.WaitGroup // goroutines of Start

	mu      sync.Mutex // guards the fields below
	asker   Asker
	model   string
	running map[int64]context.CancelCauseFunc // by conversation
	closed  bool
}

// errStopped is the cause of a context that Stop or Close ended.
var errStopped = errors.New("stopped")

// New makes a session without a model. The Store stays the caller's.
func New(cfg Config) *Session {
	return &Session{cfg: cfg, running: map[int64]context.CancelCauseFunc{}}
}

// Store is the history that the session writes.
func (s *Session) Store() *history.Store { return s.cfg.Store }

// Use sets who answers from now on, and the model's name as people know it.
// nil: nobody. Answers that run are not touched.
func (s *Session) Use(a Asker, model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asker, s.model = a, model
}

// Model names what is in use; "" when nothing is.
func (s *Session) Model() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asker == nil {
		return ""
	}
	return s.model
}

// An Update tells an observer how an answer comes along: Began, any number of
// texts, Ended.
type Update struct {
	Kind         UpdateKind
	Conversation int64
	Question     history.Message // with Began
	Answer       history.Message // with Began (empty, but for one that goes on) and Ended
	Delta        inference.Delta // with Text; as Shown gives it
}

// Shown is what people see of a piece of an answer. A call of a tool is text to
// them: nothing here runs tools, and an answer may be nothing else.
func Shown(d inference.Delta) inference.Delta {
	d.Text, d.ToolCall = d.Text+d.ToolCall, ""
	return d
}

// UpdateKind tells updates apart.
type UpdateKind int

// The kinds of updates.
const (
	Began UpdateKind = iota // question and answer have rows in the history
	Text                    // a piece of the answer
	Ended                   // the answer is complete, stopped or failed
)

// Ask puts text as the next message of the conversation and blocks until the
// answer has ended. The answer is in the history as far as it came, also when
// Ask returns an error; its Status says how it ended. An answer ended by Stop is
// no error. ErrNoModel, ErrBusy, ErrClosed and errors of the history come before
// Began, and then nothing was asked.
func (s *Session) Ask(ctx context.Context, conversation int64, text string, on func(Update)) (history.Message, error) {
	run, err := s.begin(ctx, conversation)
	if err != nil {
		return history.Message{}, err
	}
	defer run.end()
	return s.ask(run, text, on)
}

// Start is Ask without waiting: the answer runs until it ends, Stop or Close.
// failed is told what Ask would return before Began; errors after it are in the
// answer itself.
func (s *Session) Start(conversation int64, text string, on func(Update), failed func(error)) {
	s.start(conversation, s.ask, text, on, failed)
}

func (s *Session) start(conversation int64, how func(run, string, func(Update)) (history.Message, error), text string, on func(Update), failed func(error)) {
	run, err := s.begin(context.Background(), conversation)
	if err != nil {
		failed(err)
		return
	}
	go func() { // Close waits for it through wg, which begin raised
		defer run.end()
		began := false
		_, err := how(run, text, func(u Update) {
			began = true
			on(u)
		})
		if err != nil && !began {
			failed(err)
		}
	}()
}

// Stop ends the running answer of a conversation, if there is one. It does not
// wait.
func (s *Session) Stop(conversation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[conversation]; cancel != nil {
		cancel(errStopped)
	}
}

// Running says whether the conversation is being answered.
func (s *Session) Running(conversation int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[conversation] != nil
}

// Close stops all answers and waits until their text is written.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.running {
		cancel(errStopped)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// A run is one answer being made.
type run struct {
	ctx          context.Context
	conversation int64
	asker        Asker
	model        string
	end          func()
}

func (s *Session) begin(ctx context.Context, conversation int64) (run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return run{}, ErrClosed
	case s.asker == nil:
		return run{}, ErrNoModel
	case s.running[conversation] != nil:
		return run{}, ErrBusy
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.running[conversation] = cancel
	s.wg.Add(1)
	return run{ctx, conversation, s.asker, s.model, func() {
		cancel(nil)
		s.mu.Lock()
		delete(s.running, conversation)
		s.mu.Unlock()
		s.wg.Done()
	}}, nil
}

func (s *Session) ask(r run, text string, on func(Update)) (history.Message, error) {
	store := s.cfg.Store
	past, err := store.Messages(r.ctx, r.conversation)
	if err != nil {
		return history.Message{}, err
	}
	question := history.Message{Conversation: r.conversation, Role: history.RoleUser, Content: text}
	if len(past) > 0 {
		question.Parent = past[len(past)-1].ID
	} else if err := store.SetTitle(r.ctx, r.conversation, title(text)); err != nil {
		return history.Message{}, err
	}
	if question, err = store.AddMessage(r.ctx, question); err != nil {
		return history.Message{}, err
	}
	answer, err := store.BeginAnswer(r.ctx, r.conversation, question.ID, r.model)
	if err != nil {
		return history.Message{}, err
	}
	return s.stream(r, answer, question, inference.Request{Messages: prompt(s.cfg.System, append(past, question))}, on)
}

// stream has the request answered and keeps the answer to the question.
func (s *Session) stream(r run, answer *history.Answer, question history.Message, request inference.Request, on func(Update)) (history.Message, error) {
	store := s.cfg.Store
	request.Sampling, request.MaxTokens = s.cfg.Sampling, s.cfg.MaxTokens
	on(Update{Kind: Began, Conversation: r.conversation, Question: question, Answer: answer.Message()})

	stats, err := r.asker.Chat(r.ctx, request, func(d inference.Delta) {
		d = Shown(d)
		answer.Append(d.Text, d.Reasoning)
		on(Update{Kind: Text, Conversation: r.conversation, Delta: d})
	})
	end := outcome(r.ctx, stats, err)
	if request.Begun != "" && errors.Is(err, inference.ErrUnsupported) {
		end = history.Outcome{Status: history.StatusInterrupted} // as it was
	}
	err = errors.Join(err, s.finish(r.ctx, answer, end))

	// Read back: what people see from now on is what is kept.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), finishTimeout)
	defer cancel()
	message, readErr := store.Message(ctx, answer.Message().ID)
	if readErr != nil {
		message = answer.Message()
		message.Status, message.Error = history.StatusFailed, readErr.Error()
		err = errors.Join(err, readErr)
	}
	on(Update{Kind: Ended, Conversation: r.conversation, Answer: message})
	if context.Cause(r.ctx) == errStopped && message.Status == history.StatusStopped {
		return message, nil
	}
	return message, err
}

func (s *Session) finish(ctx context.Context, answer *history.Answer, end history.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := answer.Finish(ctx, end); err != nil {
		return fmt.Errorf("keeping the answer: %w", err)
	}
	return nil
}

// outcome says how an answer ended.
func outcome(ctx context.Context, stats inference.Stats, err error) history.Outcome {
	end := history.Outcome{Status: history.StatusDone, Stats: history.Stats{
		PromptTokens:           stats.PromptTokens,
		GeneratedTokens:        stats.GeneratedTokens,
		PrefillTokensPerSecond: stats.PrefillTokensPerSecond(),
		DecodeTokensPerSecond:  stats.DecodeTokensPerSecond(),
		DroppedMessages:        stats.DroppedMessages,
		Stop:                   string(stats.Stop),
	}}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		end.Status = history.StatusStopped
	default:
		end.Status, end.Error = history.StatusFailed, err.Error()
	}
	return end
}
