package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host/cli"
	"github.com/heddle-live/heddle/host/config"
)

// ready is the line that serve prints once it serves, for scripts and benches.
type ready struct {
	Data  string `json:"data"`
	Admin string `json:"admin"`
	// KeyFile is where the admin key stands, absent if the caller gave the key.
	KeyFile string `json:"admin_key_file,omitempty"`
}

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server until it is interrupted",
		Long: `Run a server until it is interrupted.

It prints one line of JSON with its addresses when it is ready, and logs to
standard error. The data listener carries pages, WebSocket, WebTransport and
QUIC on one port; the admin listener carries the REST API and needs the admin
key, which is made at the first start and kept in the data directory.`,
		Example: `  heddle serve --data-dir ./data
  HEDDLE_DATA_DIR=./data heddle serve --data-listen 127.0.0.1:8000`,
		Args: cobra.NoArgs,
	}
	config.AddFlags(cmd.Flags(), config.GroupServer, config.GroupLimits)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd.Flags(), os.Environ())
		if err != nil {
			return &cli.Error{Code: cli.ExitUsage, Text: err.Error()}
		}
		server, err := Start(cmd.Context(), cfg, Options{
			Logger: newLogger(cfg), Version: Version(),
		})
		if err != nil {
			return startError(err, func(port string) string {
				if port == portOf(cfg.AdminListen) && port != portOf(cfg.DataListen) {
					return "--admin-listen or HEDDLE_ADMIN_LISTEN"
				}
				return "--data-listen or HEDDLE_DATA_LISTEN"
			})
		}
		line := ready{Data: server.DataAddr(), Admin: server.AdminAddr()}
		if cfg.AdminKey == "" {
			line.KeyFile = config.AdminKeyFile(cfg.DataDir)
		}
		text, err := json.Marshal(line)
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
		}
		if err != nil {
			return err
		}
		return server.Run(cmd.Context())
	}
	return cmd
}

// startError says which setting to change where an address cannot be had.
// settingOf names the one that gives a port.
func startError(err error, settingOf func(port string) string) error {
	taken := errors.Is(err, syscall.EADDRINUSE)
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Addr == nil || !taken && !errors.Is(err, syscall.EACCES) {
		return err
	}
	text := fmt.Sprintf("the address %s is taken: another server may be running", op.Addr)
	if !taken {
		text = fmt.Sprintf("the address %s may not be used by this user", op.Addr)
	}
	return &cli.Error{
		Code: cli.ExitRefused, Text: text,
		Hint: "end that one, or give another address with " + settingOf(portOf(op.Addr.String())) +
			"; port 0 takes a free one",
	}
}

func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return port
}
