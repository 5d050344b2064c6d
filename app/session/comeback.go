package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"daisy/app/history"
	"daisy/inference"
)

// Standing is what the app needs to know of itself to come back as it was. The
// app keeps it in a file while it runs.
type Standing struct {
	Chat         bool     `json:"chat"`                   // its window was open
	Cluster      bool     `json:"cluster"`                // its window was open
	Conversation int64    `json:"conversation,omitempty"` // in the chat window; 0: a new one
	Running      []int64  `json:"running,omitempty"`      // conversations being answered
	Model        string   `json:"model,omitempty"`        // path of the one that this Mac led, "" for none
	Members      []string `json:"members,omitempty"`      // IDs of the other Macs that had it
}

// Equal compares all fields.
func (s Standing) Equal(o Standing) bool {
	return s.Chat == o.Chat && s.Cluster == o.Cluster && s.Conversation == o.Conversation && s.Model == o.Model &&
		slices.Equal(s.Running, o.Running) && slices.Equal(s.Members, o.Members)
}

// Answering lists the conversations that are being answered.
func (s *Session) Answering() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []int64
	for id := range s.running {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// CutOff says whether the conversation ends with an answer that was cut off when
// the program that wrote it died, so that Continue has something to do.
func (s *Session) CutOff(ctx context.Context, conversation int64) (bool, error) {
	messages, err := s.cfg.Store.Messages(ctx, conversation)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	return cutOff(messages[len(messages)-1]) && !s.Running(conversation), nil
}

// cutOff: a row stays streaming where another program had the history open when
// it was opened again.
func cutOff(m history.Message) bool {
	return m.Role == history.RoleAssistant && (m.Status == history.StatusInterrupted || m.Status == history.StatusStreaming)
}

// Continue completes the answer that CutOff told of, without waiting, as Start
// does: from the text that is there. Where the model cannot go on from it, the
// half stays and a new answer to the same question follows it.
// history.ErrComplete, to failed, when there is none.
func (s *Session) Continue(conversation int64, on func(Update), failed func(error)) {
	s.start(conversation, s.goOn, "", on, failed)
}

func (s *Session) goOn(r run, _ string, on func(Update)) (history.Message, error) {
	store := s.cfg.Store
	messages, err := store.Messages(r.ctx, r.conversation)
	if err != nil {
		return history.Message{}, err
	}
	if len(messages) == 0 || !cutOff(messages[len(messages)-1]) {
		return history.Message{}, history.ErrComplete
	}
	half := messages[len(messages)-1]
	at := slices.IndexFunc(messages, func(m history.Message) bool { return m.ID == half.Parent })
	if at < 0 {
		return history.Message{}, fmt.Errorf("going on with an answer: its question: %w", history.ErrNotFound)
	}
	question := messages[at]
	request := inference.Request{Messages: prompt(s.cfg.System, messages[:at+1])}
	if half.Reasoning == "" { // thoughts cannot be put back: their marks are not kept
		answer, err := store.ContinueAnswer(r.ctx, half.ID)
		if err != nil {
			return history.Message{}, err
		}
		request.Begun = half.Content
		message, err := s.stream(r, answer, question, request, unlessRefused(on))
		if half.Content == "" || !errors.Is(err, inference.ErrUnsupported) {
			return message, err
		}
	}
	request.Begun = ""
	answer, err := store.BeginAnswer(r.ctx, r.conversation, question.ID, r.model)
	if err != nil {
		return history.Message{}, err
	}
	return s.stream(r, answer, question, request, on)
}

// unlessRefused holds back Began until something follows it, and says nothing of
// an answer that stays cut off.
func unlessRefused(on func(Update)) func(Update) {
	var began *Update
	return func(u Update) {
		switch {
		case u.Kind == Began:
			began = &u
			return
		case u.Kind == Ended && u.Answer.Status == history.StatusInterrupted:
			return
		case began != nil:
			on(*began)
			began = nil
		}
		on(u)
	}
}
