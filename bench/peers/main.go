// Command peers measures Seatrial's engine beside the load generators that are installed, against one
// nginx, in one run: every round sends with each tool in turn, and what is printed are medians over the
// rounds and the medians of the ratios within a round, as Markdown. Fewer than five rounds give no ratio.
//
//	go run ./bench/peers -rounds 5
//
// CPU is that of the client's process, children included, over its whole life. Requests are counted by
// nginx, the same for every tool.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// minRounds is how many rounds a ratio needs.
const minRounds = 5

// openRate is the rate of the open loops, in requests a second.
const openRate = 20_000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == sendCommand {
		return send(ctx, args[1:], out)
	}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	rounds := flags.Int("rounds", minRounds, "rounds of each table")
	length := flags.Duration("length", 2*time.Second, "how long each tool sends in a round")
	only := flags.String("only", "", "tables to run, separated by commas; all when empty")
	profiles := flags.String("profile", "", "existing `folder` for a CPU profile of each of Seatrial's entries in its last round; that round then costs more")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < minRounds {
		return fmt.Errorf("%d rounds are too few for a ratio: at least %d", *rounds, minRounds)
	}
	site, err := startNginx(ctx)
	if err != nil {
		return err
	}
	defer site.stop()
	_, _ = fmt.Fprintf(out, "%s; %d rounds of %s, interleaved; nginx with one worker.\n", machine(), *rounds, *length)
	ran := 0
	for _, t := range tables(site) {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), t.name) {
			continue
		}
		ran++
		if err := t.measure(ctx, site, *rounds, *length, *profiles, out); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if ran == 0 {
		return errors.New("no table of that name")
	}
	return nil
}
