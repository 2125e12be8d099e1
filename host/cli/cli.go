// Package cli holds the commands that are clients of a server: apply, write,
// load, call and query. They send REST requests to the admin listener and word its
// answers for a terminal, or with --json for programs; watch uses the data
// listener, and test needs no server. The package opens no graph and no journal;
// package host puts its commands into the binary.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
)

// Exit codes of the client commands.
const (
	ExitRefused     = 1 // the server refused the request: it is wrong, or what it names is missing
	ExitUsage       = 2 // the command line is wrong, or a file cannot be read
	ExitUnreachable = 3 // no server answers there, or it does not take the key
	ExitLater       = 4 // the server is busy, closing or too slow: it may go well later
	ExitUnmet       = 5 // an action's conditions did not hold, so that it wrote nothing
)

// Error is what a client command fails with. Its text is for a terminal and may
// have several lines.
type Error struct {
	Code    int            // one of the Exit constants
	Problem *admin.Problem // the server's answer, nil if there was none
	Text    string         // what is wrong, if there is no Problem
	Hint    string         // what to do about it, may be ""

	raw    []byte // the Problem as it came
	asJSON bool
}

// Error returns the text, or with --json the problem as one line of JSON.
func (e *Error) Error() string {
	p := e.Problem
	if p == nil {
		p = &admin.Problem{Code: "client", Title: "Client error", Detail: e.Text, Hint: e.Hint}
	}
	if !e.asJSON {
		return p.Text()
	}
	if e.raw != nil {
		return string(e.raw)
	}
	var body any = p
	if p.Status == 0 {
		body = clientProblem{p.Title, p.Code, p.Detail, p.Hint}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return p.Text()
	}
	return string(text)
}

// clientProblem is a problem that no server has answered, so it has no status.
type clientProblem struct {
	Title  string `json:"title"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// Report prints an error of any command for its user, unless it is nil, and
// returns the process's exit code. With --json it is one line of JSON.
func Report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	e, ours := errors.AsType[*Error](err)
	prefix := "heddle: "
	if ours && e.asJSON {
		prefix = ""
	}
	// Where errors cannot be written there is nobody to tell.
	_, _ = fmt.Fprintf(w, "%s%s\n", prefix, err)
	if ours {
		return e.Code
	}
	if coded, ok := errors.AsType[exitCoder](err); ok {
		return coded.ExitCode()
	}
	return ExitRefused
}

// exitCoder is an error of a package that knows nothing of this one.
type exitCoder interface {
	error
	ExitCode() int
}

// NewClientCommands returns the commands apply, write, load, query, watch, call,
// test, errors, why, why-not and explain.
func NewClientCommands() []*cobra.Command {
	return []*cobra.Command{
		applyCommand(), writeCommand(), loadCommand(), queryCommand(), watchCommand(),
		callCommand(), testCommand(), errorsCommand(), whyCommand(), whyNotCommand(),
		explainPlanCommand(),
	}
}

// command is what these commands share: settings, --json and the wording of
// errors.
type command struct {
	*cobra.Command
	asJSON bool
}

// newCommand returns a command with the client's flags whose run asks a server. It
// takes so many arguments, or if that is negative, at least so many.
func newCommand(use, short, long, example string, args int,
	run func(c *command, server *client, args []string) error,
) *command {
	c := &command{Command: &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
	}}
	c.Args = func(cmd *cobra.Command, given []string) error {
		if len(given) == args || args < 0 && len(given) >= -args {
			return nil
		}
		return usageError(cmd, fmt.Sprintf("%s takes %s, and %d %s given", cmd.CommandPath(),
			strings.TrimPrefix(use, cmd.Name()+" "), len(given), wasWere(len(given))))
	}
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, err.Error())
	})
	c.Flags().BoolVar(&c.asJSON, "json", false,
		"print the server's answer as JSON; errors too, on standard error")
	load := settingsFlags(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		// The command line was right: what fails now is not helped by the usage.
		cmd.SilenceUsage = true
		settings, err := load()
		if err == nil {
			var server *client
			if server, err = newClient(settings); err == nil {
				err = run(c, server, args)
			}
		}
		if e, ok := errors.AsType[*Error](err); ok {
			e.asJSON = c.asJSON
		}
		return err
	}
	return c
}

// usageError is a wrong command line; it shows a right one.
func usageError(cmd *cobra.Command, text string) error {
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return &Error{
		Code: ExitUsage, Text: text,
		Hint: "for example: " + example + "; more with --help",
	}
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// printJSON prints a server's answer as it came.
func (c *command) printJSON(body []byte) error { return c.print("%s", body) }

func (c *command) print(format string, args ...any) error {
	_, err := fmt.Fprintf(c.OutOrStdout(), format, args...)
	return err
}

// open opens a file, or standard input for "-". The size is -1 if it is not known.
func (c *command) open(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(c.InOrStdin()), -1, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, &Error{Code: ExitUsage, Text: err.Error()}
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		_ = file.Close()
		if err == nil {
			err = fmt.Errorf("%s is a directory", name)
		}
		return nil, 0, &Error{Code: ExitUsage, Text: err.Error()}
	}
	return file, info.Size(), nil
}
