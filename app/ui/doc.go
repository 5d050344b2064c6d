// Package ui is the app that people see: the menu-bar menu, the chat window and
// the cluster window. It shows what app/session holds and knows no protocol.
//
// Caller: package main in app, through Run.
//
// Concurrency: Run blocks and must be called on the main goroutine. Everything
// in this package runs on fyne's goroutine, except what a comment says may come
// from elsewhere; fyne.Do is called only where such calls enter (edge.go).
//
// With the build tag "headless" the package links no window toolkit, and Run
// returns ErrNoWindows.
package ui
