// Package trainer is the reference trainer: a small real transformer trained by real
// processes on CPUs, so that running jobs live needs nothing but Go. It is a job
// like any other: it finds its place in RANK, WORLD_SIZE, MASTER_ADDR and
// MASTER_PORT as torchrun sets them, tells its progress and takes requests by the
// protocol of package progress, saves checkpoints and resumes from them, with
// another number of workers if need be, and executes pipeline plans.
//
// A job is data parallel, its workers summing gradients in a ring, or, with a plan
// in MUSTER_PLAN, a pipeline with one or more stages a worker, or both: with k times as
// many workers as the plan is for there are k pipelines, which share the batch and sum
// the gradients of each stage. A plan may also slice each layer over several workers
// (tensor parallelism). With t slices and k pipelines, worker r of a pipeline is those
// with ranks (r*k + pipeline)*t + slice. However it is divided the global batch is the
// same, so losses agree within rounding, and a rerun on as many workers repeats every bit.
package trainer

import (
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/run/trainer/progress"
)

// Exit codes. A supervisor tries again after ExitPeer without blaming the job.
const (
	ExitDone    = 0   // all steps were made
	ExitFailed  = 1   // something broke here
	ExitUsage   = 2   // options, plan or checkpoint do not fit
	ExitPeer    = 75  // another worker is lost (EX_TEMPFAIL)
	ExitStopped = 143 // stopped on request, as a process ended by SIGTERM
)

var (
	errUsage   = errors.New("cannot run this job")
	errStopped = errors.New("stopped on request")
)

// job is everything a worker is started with.
type job struct {
	config      Config
	text        []byte
	plan        *pipeline.Plan
	place       place
	checkpoints checkpoints // no dir: none are saved
	timings     string      // the file for how long passes took; empty is none
	meetWithin  time.Duration
	measure     string // the file for what is measured in place of training
}

// Main runs one worker and returns its exit code. args are the flags without the
// program's name; env looks up environment variables.
func Main(args []string, env func(string) string, stderr io.Writer) int {
	err := start(args, env, stderr)
	code := exitCode(err)
	if code != ExitDone {
		fmt.Fprintf(stderr, "trainer: %s\n", err)
	}
	return code
}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitDone
	case errors.Is(err, errStopped):
		return ExitStopped
	case errors.Is(err, errPeer):
		return ExitPeer
	case errors.Is(err, errUsage), errors.Is(err, errMismatch):
		return ExitUsage
	}
	return ExitFailed
}

func start(args []string, env func(string) string, stderr io.Writer) error {
	j, err := parse(args, env, stderr)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if j.measure != "" {
		return writeFigures(j.measure)
	}
	report, err := progress.Open(env)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	asked := newRequests(progress.Listen(env))
	defer asked.listen()()
	r := &run{job: j, report: report, requests: asked, log: stderr}
	err = r.all()
	if writeErr := report.Close(); writeErr != nil {
		fmt.Fprintf(stderr, "trainer: %s\n", writeErr) // no reason to fail what was trained
	}
	return err
}

// parse reads flags and environment.
func parse(args []string, env func(string) string, stderr io.Writer) (job, error) {
	j := job{config: Default(), text: corpus, checkpoints: checkpoints{dir: env("MUSTER_CHECKPOINT_DIR")}, timings: env("MUSTER_TIMINGS")}
	c := &j.config
	flags := flag.NewFlagSet("trainer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.Steps, "steps", c.Steps, "training `steps` in all")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`seed` of parameters and data order")
	flags.IntVar(&c.Batch, "batch", c.Batch, "`sequences` per step over all workers")
	flags.IntVar(&c.Seq, "seq", c.Seq, "`tokens` per sequence")
	flags.IntVar(&c.Dim, "dim", c.Dim, "`width` of the model")
	flags.IntVar(&c.Layers, "layers", c.Layers, "transformer `blocks`")
	flags.IntVar(&c.Heads, "heads", c.Heads, "attention `heads` per block")
	flags.Float64Var(&c.LR, "lr", c.LR, "learning `rate`")
	flags.IntVar(&c.CheckpointEvery, "checkpoint-every", c.CheckpointEvery, "`steps` between checkpoints; 0: only at the end and when asked")
	flags.IntVar(&c.TimingsEvery, "timings-every", c.TimingsEvery, "`steps` between reports of how long passes took, where MUSTER_TIMINGS names a file")
	flags.DurationVar(&c.StepDelay, "step-delay", 0, "least `time` per step")
	flags.DurationVar(&j.meetWithin, "rendezvous-timeout", 30*time.Second, "`time` for all workers to come")
	flags.StringVar(&j.measure, "measure", "", "train nothing, and write what a worker was measured to do here to this `file`")
	text := flags.String("text", "", "`file` to train on; empty: a text that is built in")
	if err := flags.Parse(args); err != nil {
		return job{}, err
	}
	if flags.NArg() > 0 {
		return job{}, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	if j.measure != "" {
		return j, nil
	}
	told, err := readPlan(env("MUSTER_PLAN"))
	if err != nil {
		return job{}, err
	}
	if told != nil {
		said := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { said[f.Name] = true })
		if err := c.build(told, func(flag string) bool { return said[flag] }); err != nil {
			return job{}, fmt.Errorf("MUSTER_PLAN %s: %w", env("MUSTER_PLAN"), err)
		}
	}
	if v := env("MUSTER_BATCH"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return job{}, fmt.Errorf("MUSTER_BATCH=%q: expected a number of sequences", v)
		}
		c.Batch = n
	}
	if err := c.Validate(); err != nil {
		return job{}, err
	}
	if j.timings == "" {
		c.TimingsEvery = 0
	}
	if *text != "" {
		b, err := os.ReadFile(*text)
		if err != nil {
			return job{}, err
		}
		j.text = b
	}
	if err := checkText(j.text, c.Shape); err != nil {
		return job{}, err
	}
	if told != nil {
		if err := checkPlan(told, *c); err != nil {
			return job{}, fmt.Errorf("MUSTER_PLAN %s: %w", env("MUSTER_PLAN"), err)
		}
		j.plan = &told.Plan
	}
	return j, j.findPlace(env)
}

// readPlan reads the plan at a path; where there is none it is nil.
func readPlan(path string) (*shape.Told, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("MUSTER_PLAN: %w", err)
	}
	told, err := shape.ReadTold(b)
	if err != nil {
		return nil, fmt.Errorf("MUSTER_PLAN %s: %w", path, err)
	}
	return told, nil
}

// findPlace reads the variables of torchrun; without WORLD_SIZE the job is alone.
func (j *job) findPlace(env func(string) string) error {
	p := place{world: 1, patience: defaultPatience, digest: j.digest()}
	var err error
	if v := env("WORLD_SIZE"); v != "" {
		if p.world, err = strconv.Atoi(v); err != nil || p.world < 1 {
			return fmt.Errorf("WORLD_SIZE=%q: expected the number of workers", v)
		}
	}
	if v := env("RANK"); v != "" || p.world > 1 {
		if p.rank, err = strconv.Atoi(v); err != nil || p.rank < 0 || p.rank >= p.world {
			return fmt.Errorf("RANK=%q: expected 0 to %d", v, p.world-1)
		}
	}
	if p.world > 1 {
		addr, port := env("MASTER_ADDR"), env("MASTER_PORT")
		if n, err := strconv.Atoi(port); addr == "" || err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("MASTER_ADDR=%q MASTER_PORT=%q: %d workers need a host and a port from 1 to 65535", addr, port, p.world)
		}
		p.master = net.JoinHostPort(addr, port)
	}
	if j.plan != nil {
		p.pipe, p.tensor = len(j.plan.Orders), int(max(1, j.plan.Tensor))
		if n := p.pipe * p.tensor; p.world%n != 0 {
			return fmt.Errorf("WORLD_SIZE is %d: the plan is for %d workers, %d in a row with each layer on %d, or a multiple of them that share the batch", p.world, n, p.pipe, p.tensor)
		}
	}
	j.place, j.checkpoints.rank = p, p.rank
	if least := j.leastBatch(); least > j.config.Batch {
		return fmt.Errorf("WORLD_SIZE is %d: a batch of %d sequences is too small, expected at least %d: one for each worker or, of pipelines, for each microbatch", p.world, j.config.Batch, least)
	}
	return nil
}

// leastBatch is a sequence for each worker or, of pipelines, for each microbatch.
func (j *job) leastBatch() int {
	if j.plan == nil {
		return j.place.world
	}
	return j.place.world / (j.place.pipe * j.place.tensor) * int(j.plan.Microbatches)
}

// digest stands for what all workers must have in common.
func (j *job) digest() string {
	plan := pipeline.Plan{}
	if j.plan != nil {
		plan = *j.plan
	}
	all := fmt.Sprintf("%+v %+v %d", j.config, plan, crc32.ChecksumIEEE(j.text))
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(all)))
}
