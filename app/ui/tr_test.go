//go:build !headless

package ui

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/assets"
)

var languages = []string{"en", "id", "hi"}

// texts of a language: each key with its forms.
func translation(t *testing.T, language string) map[string][]string {
	t.Helper()
	data, err := assets.Translations.ReadFile("translations/" + language + ".json")
	require.NoError(t, err)
	var raw map[string]any
	require.NoError(t, json.Unmarshal(data, &raw))
	all := map[string][]string{}
	for key, v := range raw {
		switch v := v.(type) {
		case string:
			all[key] = []string{v}
		case map[string]any:
			require.Contains(t, v, "other", key)
			for _, form := range v {
				all[key] = append(all[key], form.(string))
			}
		default:
			require.Fail(t, "neither a text nor forms", key)
		}
	}
	return all
}

func keys(m map[string][]string) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

var (
	place = regexp.MustCompile(`{{[^}]*}}`)
	used  = regexp.MustCompile(`\btrn?\("([^"]+)"`)
)

// Every language has every text, with the same places to fill, and the
// languages differ.
func TestTranslationsAreComplete(t *testing.T) {
	files, err := assets.Translations.ReadDir("translations")
	require.NoError(t, err)
	require.Len(t, files, len(languages))

	english := translation(t, "en")
	for _, language := range languages[1:] {
		other := translation(t, language)
		require.Equal(t, keys(english), keys(other), language)
		same := 0
		for key, forms := range other {
			for _, form := range forms {
				require.NotEmpty(t, strings.TrimSpace(form), "%s: %s", language, key)
				require.ElementsMatch(t, place.FindAllString(english[key][0], -1), place.FindAllString(form, -1), "%s: %s", language, key)
			}
			if slices.Equal(forms, english[key]) {
				same++
			}
		}
		require.Less(t, same, 8, "%s is mostly English", language)
	}
}

// Every text that the code asks for is there, and no other but the toolkit's.
func TestTranslationsAreUsed(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, name := range append(sources, "words.go") {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range used.FindAllStringSubmatch(string(data), -1) {
			asked[m[1]] = true
		}
		for key := range translation(t, "en") {
			if strings.Contains(string(data), `"`+key+`"`) && strings.Contains(key, ".") {
				asked[key] = true // in a table
			}
		}
	}
	english := translation(t, "en")
	for key := range asked {
		require.Contains(t, english, key)
	}
	for key := range english {
		ours := strings.Contains(key, ".") && !strings.HasPrefix(key, "file.")
		require.True(t, !ours || asked[key], "nobody asks for %s", key)
	}
}

// The person's language is taken from the system.
func TestLanguageFollowsTheSystem(t *testing.T) {
	for locale, want := range map[string]string{"id_ID.UTF-8": "Kirim", "hi_IN.UTF-8": "भेजें", "en_GB.UTF-8": "Send", "C": "Send"} {
		t.Setenv("LANGUAGE", "")
		t.Setenv("LC_ALL", locale)
		require.NoError(t, loadTranslations())
		require.Equal(t, want, tr("chat.send"), locale)
	}
	t.Setenv("LC_ALL", "en_US.UTF-8")
	require.NoError(t, loadTranslations())
	require.Equal(t, "on 1 Mac", trn("state.on_macs", 1))
	require.Equal(t, "on 3 Macs", trn("state.on_macs", 3))
}
