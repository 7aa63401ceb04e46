package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/steady"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/spread"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer"
)

// upFlags are the settings of a control plane on this machine.
type upFlags struct {
	state, socket, strategy, queues string
	listen, page, socketGroup       string
	tls                             struct{ cert, key string } // files
	shadows, scripts                []string
	slots                           local.Slots
	slotCPU, slotMemory             string
	policy                          engine.Policy
	stop                            struct{ checkpoint, grace unit.Duration }
	every                           struct{ summary, snapshot unit.Duration }
	userRate                        float64 // requests per second
	allowRoot, acceptLoss, verbose  bool
}

// defaultUp declares four slots of half a core, the shape of the demonstration.
func defaultUp() upFlags {
	f := upFlags{slots: local.Slots{Count: 4}, slotCPU: "500m", slotMemory: "1GiB", policy: engine.DefaultPolicy(),
		userRate: 1000}
	f.stop.checkpoint, f.stop.grace = 30*unit.Second, 10*unit.Second
	f.every.summary, f.every.snapshot = 5*unit.Second, unit.Day
	return f
}

func upCommand() *cobra.Command {
	f := defaultUp()
	cmd := &cobra.Command{Use: "up", GroupID: "run", Args: cobra.NoArgs,
		Short: "Run the control plane on this machine",
		Long: "Run the control plane on this machine: it finds the GPUs, or takes declared slots of cores and memory,\n" +
			"and runs what is submitted as real processes. It may be stopped or killed at any time; running jobs go\n" +
			"on and are found again.",
		RunE: func(cmd *cobra.Command, _ []string) error { return up(f, cmd.ErrOrStderr()) }}
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", defaultState(), "directory of the journal, the jobs' checkpoints and logs")
	fl.StringVar(&f.socket, "socket", "", "where to listen; by default muster.sock in the state directory")
	fl.StringVar(&f.listen, "listen", "", "where the API is served to other machines over TLS, HOST:PORT; callers show a token (see muster user)")
	fl.StringVar(&f.tls.cert, "tls-cert", "", "PEM file of the certificate for --listen (default one made at the first start)")
	fl.StringVar(&f.tls.key, "tls-key", "", "PEM file of its key")
	fl.StringVar(&f.page, "page", "127.0.0.1:0", "where the report page and metrics are served to this machine; off is nowhere")
	fl.StringVar(&f.strategy, "strategy", "", "a strategy, several joined by +, script:PATH (see docs/external.md) or a YAML file (default the last one, at first "+catalogue.House+"; see muster strategies)")
	fl.StringVar(&f.queues, "queues", "", "a tree of queues that replaces the last one at the start: a YAML file, venus, philly or queues:NxG (see muster queues)")
	fl.StringArrayVar(&f.shadows, "shadow", nil, "a strategy that is asked what it would decide, and not obeyed (may be repeated; see muster shadow)")
	fl.StringArrayVar(&f.scripts, "script", nil, "a script that a strategy chosen later may run; one of --strategy or --shadow may anyway (may be repeated)")
	fl.Float64Var(&f.userRate, "user-rate", f.userRate, "requests per second that each user may make; twice so many at once")
	fl.StringVar(&f.socketGroup, "socket-group", "", "whose accounts may use the socket besides its owner's: a group of this machine, by name or number")
	fl.IntVar(&f.slots.Count, "slots", f.slots.Count, "how many slots to declare where there are no GPUs")
	fl.StringVar(&f.slotCPU, "slot-cpu", f.slotCPU, "cores of a slot")
	fl.StringVar(&f.slotMemory, "slot-memory", f.slotMemory, "memory of a slot")
	fl.Var(durationFlag(&f.policy.BackOff), "back-off", "wait after a job's first failure; it doubles with each further one")
	fl.Var(durationFlag(&f.stop.checkpoint), "checkpoint-wait", "how long a job may take to save before it is stopped")
	fl.Var(durationFlag(&f.stop.grace), "grace", "time from SIGTERM to SIGKILL")
	fl.Var(durationFlag(&f.every.summary), "summary-every", "how often a job's progress is recorded at most")
	fl.Var(durationFlag(&f.every.snapshot), "snapshot-every", "how often a snapshot is saved in the state directory, the latest 7 of which are kept; 0s is never")
	fl.BoolVar(&f.allowRoot, "allow-root", false, "let jobs of root run as root")
	fl.BoolVar(&f.acceptLoss, "accept-journal-loss", false, "go on with what is intact of a damaged journal, or where it cannot be opened with the newest snapshot")
	fl.BoolVar(&f.verbose, "verbose", false, "log more")
	return cmd
}

// defaultState is where the XDG conventions put a program's state.
func defaultState() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "muster")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "muster")
	}
	return filepath.Join(home, ".local", "state", "muster")
}

// up runs the control plane until it is told to stop.
func up(f upFlags, logTo io.Writer) error {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: level}))
	machine, err := f.machine()
	if err != nil {
		return err
	}
	var composition catalogue.Composition // the last one's
	if f.strategy != "" {
		if composition, err = catalogue.ResolveLive(f.strategy); err == nil {
			err = composition.Refuse(machine.Ability)
		}
		if err != nil {
			return err
		}
	}
	endScripts, err := f.liveScripts(log, composition)
	if err != nil {
		return err
	}
	defer endScripts()
	queues, err := spec.QueuesFlag(f.queues, machine.Cluster)
	if err != nil {
		return err
	}
	state, err := filepath.Abs(f.state)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o711); err != nil {
		return err
	}
	clock := steady.Kept(filepath.Join(state, "clock"), steady.Machine, log)
	journal, err := f.journal(state, clock, log)
	if err != nil {
		return err
	}
	defer journal.Close()
	absent, err := machine.KeepPlaces(state)
	if err != nil {
		return err
	}
	driver := local.New(local.Config{State: state, Exe: exe, SlotCPU: machine.SlotCPU, SlotMemory: machine.SlotMemory, GPUs: machine.GPUs, GPU: machine.GPU, Ability: machine.Ability,
		AllowRoot: f.allowRoot, CheckpointWait: f.stop.checkpoint, Grace: f.stop.grace, SummaryEvery: f.every.summary, Log: log})
	p, err := plane.Open(plane.Config{Cluster: machine.Cluster, Absent: absent, Strategy: composition, Seed: 1, Policy: f.policy, Journal: journal,
		Driver: driver, Now: clock.Now, Log: log, Queues: queues})
	if err != nil {
		return err
	}
	if slot := p.Cluster().Models[0].Memory; !machine.GPUs && slot != machine.SlotMemory {
		log.Warn("a slot keeps the memory that this state directory was made with: use another directory for another", "memory", slot, "--slot-memory", machine.SlotMemory)
		driver.SetSlotMemory(slot)
	}
	log.Info("shares", "enforced", machine.Limits)
	if list := driver.Objections(&workload.Job{Program: workload.Program{Command: []string{"true"}}}); len(list) > 0 {
		log.Warn("jobs of the user who runs this are refused", "why", list[0])
	}
	f.state = state
	return serve(f, p, driver, &machine, journal, log)
}

func (f *upFlags) machine() (m local.Machine, err error) {
	if f.slots.CPU, err = unit.ParseMilli(f.slotCPU); err != nil {
		return m, fmt.Errorf("--slot-cpu: %w", err)
	}
	if f.slots.Memory, err = unit.ParseMiB(f.slotMemory); err != nil {
		return m, fmt.Errorf("--slot-memory: %w", err)
	}
	return local.Detect(f.slots)
}

// menus writes the menus of jobs that name a model, by the planner of the strategy at the start, and
// has the driver tell runs the plans of their offers.
func menus(p *plane.Plane, driver *local.Driver, m *local.Machine, state string) (*spread.Maker, error) {
	c, err := p.First()
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	maker, err := catalogue.LiveMenus(p.Cluster(), c, m.Ability)
	if err != nil {
		return nil, err
	}
	maker.Declared = m.Kinds(state, exe)
	driver.SetPlans(maker.Tell)
	return maker, nil
}

// serve runs the plane and its API side by side; the first to end ends the other.
func serve(f upFlags, p *plane.Plane, driver *local.Driver, machine *local.Machine, journal *store.Store, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	users, err := access.Open(accessDir(f.state))
	if err != nil {
		return err
	}
	audit, err := access.OpenLog(accessDir(f.state))
	if err != nil {
		return err
	}
	defer func() {
		if err := audit.Close(); err != nil {
			log.Error("closing the audit log", "error", err)
		}
	}()
	shadows, err := f.followers(p, log)
	if err != nil {
		return err
	}
	promises, err := keepPromises(p, f.state, log)
	if err != nil {
		return err
	}
	defer func() {
		if err := promises.Close(); err != nil {
			log.Error("closing the log of promises", "error", err)
		}
	}()
	maker, err := menus(p, driver, machine, f.state)
	if err != nil {
		return err
	}
	s := server.New(server.Config{Plane: p, Menu: maker.Write, Plan: maker.Read, Version: version(), Log: log, Logs: driver.MemberDir, Objections: driver.Objections, NotHeld: machine.NotHeld, Prepare: driver.KeepSecrets,
		Access: users, Audit: audit, Closed: f.listen != "", Promises: promises, Shadows: shadows, RatePerSec: f.userRate, Burst: 2 * f.userRate})
	listeners, err := f.listeners(f.state, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	errs := make(chan error, len(listeners)+1)
	start := func(run func() error) {
		all.Go(func() {
			defer cancel()
			errs <- run()
		})
	}
	start(func() error { return p.Run(ctx) })
	all.Go(func() { checkJournal(ctx, journal, p, log) })
	if f.every.snapshot > 0 {
		all.Go(func() { saveDaily(ctx, p, f.state, time.Duration(f.every.snapshot)*time.Microsecond, log) })
	}
	for _, l := range listeners {
		start(func() error { return s.Serve(ctx, l) })
	}
	all.Wait()
	close(errs)
	var first error
	for err := range errs {
		first = errors.Join(first, err)
	}
	return first
}

// now is the machine's clock.
func now() unit.Time { return unit.Time(time.Now().UnixMicro()) }

// superviseCommand and trainerCommand are what the control plane starts: users do
// not type them.
func superviseCommand() *cobra.Command {
	return &cobra.Command{Use: "supervise DIR", Hidden: true, Args: cobra.ExactArgs(1), Short: "Supervise one worker",
		RunE: func(_ *cobra.Command, args []string) error { return code(supervise.Main(args[0])) }}
}

func trainerCommand() *cobra.Command {
	return &cobra.Command{Use: "trainer", Hidden: true, DisableFlagParsing: true, Short: "The reference trainer",
		RunE: func(cmd *cobra.Command, args []string) error {
			return code(trainer.Main(args, os.Getenv, cmd.ErrOrStderr()))
		}}
}

// code turns an exit code into the error that carries it.
func code(n int) error {
	if n == 0 {
		return nil
	}
	return exit(n)
}
