package host

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host/cli"
	"github.com/heddle-live/heddle/host/config"
	"github.com/heddle-live/heddle/host/loopbench"
)

// Commands returns every command of the binary but the benches.
func Commands() []*cobra.Command {
	commands := []*cobra.Command{
		serveCommand(), demoCommand(), versionCommand(), loopbench.Command(),
	}
	return append(commands, cli.NewClientCommands()...)
}

// Arguments prepares the command line's arguments for the parser of commands.
func Arguments(args []string) []string { return cli.Arguments(args) }

// Strict prepares root and all commands below it to refuse wrong command lines.
func Strict(root *cobra.Command) { cli.Strict(root) }

// Report prints the error of a command and returns the process's exit code.
func Report(w io.Writer, err error) int { return cli.Report(w, err) }

// Version is the version of this build: a release's, or the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "commit " + setting.Value[:12]
		}
	}
	return "development"
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  heddle version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "heddle %s (%s, %s/%s)\n",
				Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// newLogger logs to standard error as the configuration says.
func newLogger(cfg config.Config) *slog.Logger {
	opt := &slog.HandlerOptions{}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err == nil { // Validate has looked
		opt.Level = level
	}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opt))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opt))
}
