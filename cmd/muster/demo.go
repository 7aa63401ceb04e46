package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer"
)

// demoLimit is how long the demonstration may take before it gives up.
const demoLimit = 3 * time.Minute

func demoCommand() *cobra.Command {
	var keep bool
	var report string
	cmd := &cobra.Command{Use: "demo", GroupID: "try", Args: cobra.NoArgs,
		Short: "See it run real training on this machine, in under three minutes",
		Long: "Start Muster on this machine and run a mix of real training jobs: single workers, a gang with gradient\n" +
			"all-reduce over TCP, a two-stage pipeline on the plan Muster made, a job on half a slot, a long job that gives\n" +
			"way to short ones and resumes, a worker that is killed and recovers, and a control plane that is killed with\n" +
			"signal 9 in the middle and carries on.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			d := &demo{out: cmd.OutOrStdout(), keep: keep, report: report, tty: term.IsTerminal(int(os.Stdout.Fd()))}
			return d.run(ctx)
		}}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the server running at the end")
	cmd.Flags().StringVar(&report, "report", "", "where the report is written; by default muster-demo.html in the demo's directory")
	return cmd
}

// demo is a demonstration under way: a client of a control plane that runs in a
// process of its own, so that it can be killed.
type demo struct {
	out    io.Writer
	keep   bool
	tty    bool
	report string

	dir, address string
	server       *exec.Cmd
	client       *client.Client
	began        time.Time
	screen       screen

	submittedShort, killedWorker, killedServer bool
}

// run sets everything up, plays the script and cleans up.
func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	if err := d.prepare(); err != nil {
		return err
	}
	if err := d.start(ctx); err != nil {
		return errors.Join(err, d.stop())
	}
	fmt.Fprintf(d.out, "Muster runs on this machine.\n  API     %s\n  report  %s\n  state   %s\n\n", d.socket(), d.page(), d.dir)
	err := d.play(ctx)
	if err == nil {
		err = d.finish(ctx)
	}
	if d.keep && err == nil {
		fmt.Fprintf(d.out, "\nThe server goes on (process %d). Try: muster ls --socket %s\n", d.server.Process.Pid, d.socket())
		return d.server.Process.Release()
	}
	return errors.Join(err, d.stop())
}

func (d *demo) socket() string { return filepath.Join(d.dir, "muster.sock") }
func (d *demo) page() string   { return "http://" + d.address + "/" }

// prepare makes the demo's directory with the strategy it runs under.
func (d *demo) prepare() (err error) {
	d.began = time.Now()
	// Sockets have short names: the system's own directory for temporary files.
	if d.dir, err = os.MkdirTemp("", "muster-demo-"); err != nil {
		return err
	}
	if err := os.Chmod(d.dir, 0o711); err != nil {
		return err
	}
	if d.address, err = freeAddress(); err != nil {
		return err
	}
	if d.report == "" {
		d.report = filepath.Join(d.dir, "muster-demo.html")
	}
	return os.WriteFile(filepath.Join(d.dir, "strategy.yaml"), []byte(demoStrategy), 0o644)
}

// freeAddress is a loopback port that was free a moment ago: the report page keeps
// it when the control plane is killed and comes back.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// demoStrategy is Tiresias with queues for jobs of seconds, and pipelines cut by
// dynamic programming and run one forward, one backward.
const demoStrategy = `name: tiresias for a demo
order: tiresias
place: first-fit
cut: dp-cut
sequence: 1f1b
options:
  tiresias:
    queues-device-s: [24]
`

// start starts the control plane and waits until it answers.
func (d *demo) start(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(d.dir, "muster.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	args := []string{"up", "--state", d.dir, "--socket", d.socket(), "--page", d.address, "--strategy", filepath.Join(d.dir, "strategy.yaml"),
		"--back-off", "2s", "--summary-every", "500ms", "--slots", "4", "--slot-cpu", "500m"}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-root") // who starts a demo as root has asked for it
	}
	d.server = exec.Command(exe, args...)
	d.server.Stdout, d.server.Stderr = logFile, logFile
	d.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo
	if err := d.server.Start(); err != nil {
		return err
	}
	d.client = client.New(d.socket())
	for {
		if _, err := d.client.Version(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server did not come up; see %s", filepath.Join(d.dir, "muster.log"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the control plane and what is left of its jobs.
func (d *demo) stop() error {
	if d.server == nil || d.server.Process == nil {
		return nil
	}
	members, err := supervise.Scan(d.dir)
	for _, m := range members {
		if m.Alive {
			err = errors.Join(err, supervise.Send(m.Dir, supervise.Kill))
		}
	}
	err = errors.Join(err, d.server.Process.Signal(syscall.SIGTERM))
	var status *exec.ExitError
	if e := d.server.Wait(); e != nil && !errors.As(e, &status) {
		err = errors.Join(err, e)
	}
	return err
}

// play submits the jobs, lets things happen to them and shows them until all ended.
func (d *demo) play(ctx context.Context) error {
	first, second, err := demoJobs()
	if err != nil {
		return err
	}
	if err := d.submit(ctx, first); err != nil {
		return err
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		jobs, err := d.jobs(ctx)
		if err == nil {
			nodes, _ := d.client.Nodes(ctx) // missing in one picture is no loss
			d.screen.draw(d, jobs, nodes.Nodes)
			if err := d.happen(ctx, jobs, second); err != nil {
				return err
			}
			if d.submittedShort && d.killedServer && allOver(jobs) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the demonstration did not end within %s; see %s", demoLimit, filepath.Join(d.dir, "muster.log"))
		case <-tick.C:
		}
	}
}

// happen does what the script has next: short jobs arrive, a worker is killed, the
// control plane is killed.
func (d *demo) happen(ctx context.Context, jobs []view.Job, second []workload.Job) error {
	by := map[string]*view.Job{}
	for i := range jobs {
		by[jobs[i].Name] = &jobs[i]
	}
	long := by["long"]
	switch fragile := by["fragile"]; {
	case !d.submittedShort && long != nil && long.Run == "running" && long.RanSec > 13:
		d.submittedShort = true
		d.say("Short jobs arrive: under Tiresias, jobs that have run long give way to them.")
		return d.submit(ctx, second)
	case !d.killedWorker && fragile != nil && fragile.Run == "running" && fragile.Progress > 0.35:
		d.killedWorker = true
		return d.killWorker("fragile", fragile.Attempt)
	case !d.killedServer && d.killedWorker && long != nil && (long.Preemptions > 0 || long.Over()):
		d.killedServer = true
		d.say("kill -9 of the control plane. The jobs go on without it.")
		if err := d.server.Process.Kill(); err != nil {
			return err
		}
		_ = d.server.Wait() // killed, as it was meant to be
		time.Sleep(time.Second)
		if err := d.start(ctx); err != nil {
			return err
		}
		d.say("It is back: rebuilt from its journal, and the running jobs are found again.")
	}
	return nil
}

// killWorker kills the process of a job's worker from outside.
func (d *demo) killWorker(name string, attempt int32) error {
	s := supervise.Spec{State: d.dir, Job: name, Attempt: attempt}
	records, _, err := supervise.ReadRecords(s.MemberDir(), 0)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Kind == supervise.Started {
			d.say(fmt.Sprintf("kill -9 of %s's worker (process %d). It will resume from its checkpoint.", name, r.PID))
			return syscall.Kill(r.PID, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("the record of %s has no start", name)
}

func (d *demo) jobs(ctx context.Context) ([]view.Job, error) {
	all, err := d.client.Jobs(ctx, client.ListOptions{All: true})
	return all.Jobs, err
}

func allOver(jobs []view.Job) bool {
	for i := range jobs {
		if !jobs[i].Over() {
			return false
		}
	}
	return true
}

// finish prints the table, writes the report and says whether all went well.
func (d *demo) finish(ctx context.Context) error {
	jobs, err := d.jobs(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	if err := demoTable(d.out, jobs); err != nil {
		return err
	}
	if err := d.savePage(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe report is in %s (took %s).\n", d.report, time.Since(d.began).Round(time.Second))
	var bad []string
	for i := range jobs {
		if j := &jobs[i]; j.Phase != "finished" {
			bad = append(bad, fmt.Sprintf("%s is %s: %s", j.Name, j.Phase, j.Reason))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("not every job finished: %s", strings.Join(bad, "; "))
	}
	return nil
}

// savePage keeps the server's report page as a file that opens from disk.
func (d *demo) savePage(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.page(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return toFile(d.report, func(w io.Writer) error {
		_, err := io.Copy(w, resp.Body)
		return err
	})
}

func (d *demo) submit(ctx context.Context, jobs []workload.Job) error {
	var text strings.Builder
	for _, j := range jobs {
		text.WriteString("---\n")
		text.Write(spec.FormatJob(j))
	}
	_, err := d.client.SubmitYAML(ctx, "demo.yaml", []byte(text.String()), "")
	return err
}

// demoJobs is the mix: what is there from the start, and what arrives later.
func demoJobs() (first, second []workload.Job, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	train := func(name string, steps int, more ...string) workload.Job {
		command := append([]string{exe, "trainer", "--steps", fmt.Sprint(steps), "--checkpoint-every", "20"}, more...)
		return workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Program: workload.Program{Command: command},
			Checkpoint: workload.Checkpoint{OnRequest: true, Load: 2 * unit.Second}}
	}
	pipe := train("pipeline", 260, "--seed", "2")
	pipe.Gang = 2
	pipe.Pipeline = workload.Pipeline{Stages: 2, Microbatches: 8,
		Layers: trainer.Profile(trainer.Default(), trainer.Speed{Microbatches: 8, GFLOPS: 4})}
	long := train("long", 520, "--seed", "1")
	long.Gang = 2
	fragile := train("fragile", 90, "--seed", "5")
	fragile.Retries = 3
	half := train("half", 30, "--seed", "6")
	half.Share = 500
	return []workload.Job{pipe, long}, []workload.Job{train("quick-1", 40, "--seed", "3"), train("quick-2", 40, "--seed", "4"), fragile, half}, nil
}
