//go:build !headless

package ui

import (
	"fmt"

	"fyne.io/fyne/v2/lang"

	"daisy/assets"
)

func loadTranslations() error {
	if err := lang.AddTranslationsFS(assets.Translations, "translations"); err != nil {
		return fmt.Errorf("reading the translations: %w", err)
	}
	return nil
}

// args fills the {{.Name}} places of a translated text.
type args = map[string]any

// tr is the text for key in the person's language.
func tr(key string, data ...any) string { return lang.X(key, key, data...) }

// trn is tr for a text that depends on a count, which is {{.N}} in it.
func trn(key string, n int) string { return lang.XN(key, key, n, args{"N": n}) }
