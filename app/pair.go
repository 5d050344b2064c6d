package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"daisy/app/local"

	"github.com/spf13/cobra"
)

func pairCommand(place *folder) *cobra.Command {
	var flags nodeFlags
	var p compare
	cmd := &cobra.Command{
		Use:   "pair [NAME | ID | HOST:PORT]",
		Short: "Pair this machine with another, by six digits that both show",
		Long: "Pair this machine with another, by six digits that both show. Both people must confirm.\n" +
			"Without a name it waits for another machine to begin. It works through the running Daisy;\n" +
			"when none runs, a node is started for the moment.\n\n" +
			"Compare the digits on the screens themselves. If they differ, somebody is between the two machines.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := place.open()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				p.with = args[0]
			}
			return flags.reach(cmd.Context(), dir, cmd.ErrOrStderr(), 0, func(dial dialLocal) error {
				c, err := dial()
				if err != nil {
					return err
				}
				defer c.Close()
				return p.run(c, cmd.InOrStdin(), cmd.OutOrStdout())
			})
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&p.code, "yes-code", "", "confirm without asking if these, which the other screen shows, are the digits")
	f.DurationVar(&p.find, "find", 30*time.Second, "how long to look for the machine, or to wait for it to begin")
	f.BoolVar(&p.json, "json", false, "print a JSON object per line")
	return cmd
}

// compare is what daisy pair does.
type compare struct {
	with string
	code string
	find time.Duration
	json bool
}

// paired is the last line with --json; before it comes a local.Attempt.
type paired struct {
	Paired bool   `json:"paired"`
	ID     string `json:"id"`
	Name   string `json:"name"`
}

func (p *compare) run(c *local.Client, in io.Reader, out io.Writer) error {
	a, err := c.Pair(p.with, p.find)
	if err != nil {
		return err
	}
	if p.json {
		err = printLine(out, a)
	} else {
		err = showDigits(out, a)
	}
	if err != nil {
		return err
	}
	yes := false
	if p.code == "" {
		if !p.json {
			fmt.Fprint(out, "Does the other screen show the same? [y/N] ")
		}
		line := strings.ToLower(strings.TrimSpace(answerOf(c, in)))
		yes = line == "y" || line == "yes"
	}
	if !p.json && (yes || p.code == a.Digits) {
		fmt.Fprintln(out, "Waiting for the other side to confirm…")
	}
	if err := c.Decide(yes, p.code); err != nil {
		return err
	}
	if p.json {
		return printLine(out, paired{true, string(a.ID), a.Name})
	}
	_, err = fmt.Fprintf(out, "Paired with %s (%s).\n", a.Name, a.ID.Short())
	return err
}

// printLine prints an object in one line.
func printLine(out io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", line)
	}
	return err
}

// answerOf reads a line, or nothing when the pairing ends before.
func answerOf(c *local.Client, in io.Reader) string {
	read := make(chan string, 1)
	go func() { // ends with its input, at the latest with the process
		line, _ := bufio.NewReader(in).ReadString('\n') // no answer is a no
		read <- line
	}()
	select {
	case line := <-read:
		return line
	case <-c.Over():
		return ""
	}
}

func showDigits(out io.Writer, a local.Attempt) error {
	who := "This machine wants to pair with %s (%s).\n"
	if a.Incoming {
		who = "%s (%s) wants to pair with this machine.\n"
	}
	fmt.Fprintf(out, who, a.Name, a.ID.Short())
	if a.SameName {
		fmt.Fprintln(out, "Beware: another machine of this name is paired already, with another key.")
	}
	_, err := fmt.Fprintf(out, "\n    %s %s\n\n", a.Digits[:3], a.Digits[3:])
	return err
}
