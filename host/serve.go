package host

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

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
			return err
		}
		server, err := Start(cmd.Context(), cfg, Options{
			Logger: newLogger(cfg), Version: Version(),
		})
		if err != nil {
			return err
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
