// Command muster-kube is Muster as a scheduler on Kubernetes: it takes the pods of
// its schedulerName, finds their gangs, and binds them where the engine decides.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/release"
	"github.com/musterdl/muster/mechanism/solve"
	"github.com/musterdl/muster/run/kube/advise"
)

func main() {
	if dir, err := os.UserCacheDir(); err == nil {
		solve.Cache(filepath.Join(dir, "muster", "solve"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cmd := command()
	cmd.SetContext(ctx)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "muster-kube:", err)
		os.Exit(1)
	}
}

// flags are the settings of a scheduler.
type flags struct {
	kubeconfig, scheduler, strategy, queues string
	listen, data, logFormat, logLevel       string
	elect                                   bool
	electNamespace, electName               string
	qps                                     float32
	burst                                   int
	advise, adviseAll, profiling            bool
	adviseLag, adviseRestart                time.Duration
	resources                               []string
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{Use: "muster-kube", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true, Version: release.Version,
		Short: "Muster as a scheduler on Kubernetes",
		Long: "Muster as a scheduler on Kubernetes: it takes the pods whose schedulerName is its own, from Jobs, JobSets, TrainJobs,\n" +
			"LeaderWorkerSets, RayClusters, pod groups or by themselves, and starts each gang as a whole where the strategy says.\n" +
			"Everything it has to know after a restart is in objects of the API server.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := f.log(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if f.advise && !cmd.Flags().Changed("scheduler-name") {
				f.scheduler = corev1.DefaultSchedulerName
			}
			klog.SetSlogLogger(log) // what client-go says
			return f.run(cmd.Context(), log)
		}}
	fl := cmd.Flags()
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the API server (default that of the pod it runs in, or KUBECONFIG)")
	fl.StringVar(&f.scheduler, "scheduler-name", "muster", "the schedulerName of the pods to schedule, or, to advise, of those to follow (then default-scheduler)")
	fl.StringVar(&f.strategy, "strategy", "", "a strategy, several joined by +, or a YAML file (default the last one, at first "+catalogue.House+"; see muster strategies)")
	fl.StringVar(&f.queues, "queues", "", "a YAML file with the tree of queues; without one all jobs are in one")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "where the API, /metrics, /healthz and /readyz are served")
	fl.StringVar(&f.data, "data", "", "directory of the local history, which may be lost (default a temporary one)")
	fl.BoolVar(&f.elect, "leader-elect", false, "let one of several processes schedule, and the others wait")
	fl.StringVar(&f.electNamespace, "leader-elect-namespace", "muster-system", "namespace of the lease")
	fl.StringVar(&f.electName, "leader-elect-name", "muster", "name of the lease")
	fl.Float32Var(&f.qps, "kube-api-qps", 1000, "calls per second to the API server, for bindings, records and words each; negative is no limit")
	fl.IntVar(&f.burst, "kube-api-burst", 2000, "as many at once")
	fl.BoolVar(&f.advise, "advise", false, "bind nothing: follow the present scheduler, and tell what would have been decided instead (GET /v1/advice, ?format=text for people)")
	fl.BoolVar(&f.adviseAll, "advise-all", false, "follow single pods without devices too")
	fl.DurationVar(&f.adviseLag, "advise-lag", time.Duration(advise.UsualLag)*time.Microsecond, "how far the comparison may lie behind, to get to know how long jobs run")
	fl.DurationVar(&f.adviseRestart, "advise-restart", time.Duration(advise.UsualRestart)*time.Microsecond, "what starting a job again after a preemption costs, beside its own checkpoints")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	fl.BoolVar(&f.profiling, "profiling", false, "serve /debug/pprof beside the API")
	fl.StringArrayVar(&f.resources, "device-resource", nil, "an extended resource that counts devices, beside the known ones: NAME[,model=...,memory=...] (may be repeated)")
	return cmd
}

func (f *flags) log(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: expected debug, info, warn or error", f.logLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: expected text or json", f.logFormat)
}
