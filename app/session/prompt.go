package session

import (
	"strings"
	"unicode/utf8"

	"daisy/app/history"
	"daisy/inference/chat"
)

// prompt turns the end of a conversation into what the model is asked: the line
// of parents from the last message up. A question whose answer never got any
// text is left out together with that answer, since templates want the roles in
// turn.
func prompt(system string, messages []history.Message) []chat.Message {
	byID := make(map[int64]history.Message, len(messages))
	for _, m := range messages {
		byID[m.ID] = m
	}
	var line []history.Message // newest first
	for id := messages[len(messages)-1].ID; id != 0; {
		m, ok := byID[id]
		if !ok {
			break
		}
		delete(byID, id) // a parent can be met only once
		line = append(line, m)
		id = m.Parent
	}
	var out []chat.Message
	if system != "" {
		out = append(out, chat.Message{Role: string(history.RoleSystem), Content: system})
	}
	for i := len(line) - 1; i >= 0; i-- {
		m := line[i]
		if m.Role == history.RoleUser && i > 0 && unanswered(line[i-1]) || unanswered(m) {
			continue
		}
		out = append(out, chat.Message{Role: string(m.Role), Content: m.Content})
	}
	return out
}

func unanswered(m history.Message) bool {
	return m.Role == history.RoleAssistant && strings.TrimSpace(m.Content) == ""
}

const titleRunes = 60

// title is a conversation's first line, cut at a word where possible.
func title(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= titleRunes {
		return text
	}
	text = string([]rune(text)[:titleRunes])
	if i := strings.LastIndexByte(text, ' '); i > len(text)/2 {
		text = text[:i]
	}
	return text + "…"
}
