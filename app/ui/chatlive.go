//go:build !headless

package ui

import (
	"strings"
	"sync"

	"daisy/app/history"
	"daisy/app/session"
)

// liveAnswers holds the answers that are being made, for as long as the window
// may need more than the history has yet. It is filled from the goroutines of
// the answers.
type liveAnswers struct {
	changed func() // told after each change, from any goroutine

	mu             sync.Mutex // guards the fields below
	byConversation map[int64]*liveAnswer
}

type liveAnswer struct {
	question, answer history.Message
	text, reasoning  strings.Builder
	ended            bool // answer is final
}

func newLiveAnswers(changed func()) *liveAnswers {
	return &liveAnswers{changed: changed, byConversation: map[int64]*liveAnswer{}}
}

// observe notes what happens in one conversation.
func (l *liveAnswers) observe(u session.Update) {
	l.mu.Lock()
	switch u.Kind {
	case session.Began:
		l.byConversation[u.Conversation] = &liveAnswer{question: u.Question, answer: u.Answer}
	case session.Text:
		if a := l.byConversation[u.Conversation]; a != nil {
			a.text.WriteString(u.Delta.Text)
			a.reasoning.WriteString(u.Delta.Reasoning)
		}
	case session.Ended:
		if a := l.byConversation[u.Conversation]; a != nil {
			a.answer, a.ended = u.Answer, true
		}
	}
	l.mu.Unlock()
	l.changed()
}

// get gives question and answer as far as it is known. An ended answer is
// given once more and then forgotten: the history has it.
func (l *liveAnswers) get(conversation int64) (question, answer history.Message, ended, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byConversation[conversation]
	if a == nil {
		return history.Message{}, history.Message{}, false, false
	}
	if a.ended {
		delete(l.byConversation, conversation)
		return a.question, a.answer, true, true
	}
	answer = a.answer
	answer.Content += a.text.String() // one that goes on begins with what it had
	answer.Reasoning += a.reasoning.String()
	return a.question, answer, false, true
}
