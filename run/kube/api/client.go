package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Options say how a Client behaves.
type Options struct {
	// Name is said to be the author of events; "muster" where empty. Instance tells
	// apart processes of that name; the host's name where empty.
	Name, Instance string
	// QPS and Burst limit each of three kinds of calls by itself: what is done to pods
	// and their owners, records, and words. 50 and 100 where zero, as kube-scheduler has
	// it; a negative QPS is no limit.
	QPS   float32
	Burst int
	// Timeout is the longest that a call may take; 30 seconds where zero.
	Timeout time.Duration
	// Owners are the kinds of objects that are watched, once they are served, beside
	// those that always are.
	Owners []schema.GroupVersionResource
	// Rediscover is how often the server is asked what it serves; a minute where zero.
	Rediscover time.Duration
	Log        *slog.Logger
}

func (o Options) orDefault() Options {
	if o.Instance == "" {
		o.Instance, _ = os.Hostname()
	}
	o.Name = cmp.Or(o.Name, "muster")
	o.Instance = cmp.Or(o.Instance, o.Name)
	if o.QPS == 0 {
		o.QPS, o.Burst = 50, 100
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Rediscover = cmp.Or(o.Rediscover, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Client is the door to a real API server. It holds nothing back: whoever calls it
// decides what to try again.
type Client struct {
	options Options

	core    rest.Interface // what is done to pods
	owners  rest.Interface // and to their owners, under the same limit
	records rest.Interface
	status  rest.Interface // conditions of pods
	events  rest.Interface

	// Lists and watches are few and have no limit.
	watched  map[schema.GroupVersion]rest.Interface
	dynamic  dynamic.Interface
	served   served
	speaking speech
}

var (
	_ Watcher = (*Client)(nil)
	_ Pods    = (*Client)(nil)
	_ Owners  = (*Client)(nil)
	_ Records = (*Client)(nil)
	_ Ledgers = (*Client)(nil)
	_ Voice   = (*Client)(nil)
)

const (
	inProtobuf = runtime.ContentTypeProtobuf
	inJSON     = runtime.ContentTypeJSON
	// onlyMetadata asks for no more of a written object than its metadata.
	onlyMetadata = inJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + inJSON
)

// New returns a client of the API server that the configuration tells. It calls
// nobody yet.
func New(config *rest.Config, o Options) (*Client, error) {
	o = o.orDefault()
	c := &Client{options: o, watched: map[schema.GroupVersion]rest.Interface{}}
	base := rest.CopyConfig(config)
	if base.UserAgent == "" {
		base.UserAgent = o.Name + "/" + rest.DefaultKubernetesUserAgent()
	}
	m := maker{base: base, options: o}
	acts, words := m.limited(), m.limited()
	c.core = m.client(acts, corev1.SchemeGroupVersion, inProtobuf)
	c.owners = m.client(acts, schema.GroupVersion{Version: "v1"}, inJSON) // of any kind: the path is given whole
	c.records = m.client(m.limited(), GroupVersion, inJSON)
	c.status = m.client(words, corev1.SchemeGroupVersion, inProtobuf)
	c.events = m.client(words, eventsv1.SchemeGroupVersion, inProtobuf)

	open := m.unlimited()
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, resourcev1.SchemeGroupVersion} {
		c.watched[gv] = m.client(open, gv, inProtobuf)
	}
	if m.err == nil {
		c.dynamic, m.err = dynamic.NewForConfig(open)
	}
	if m.err == nil {
		ask := rest.CopyConfig(open)
		ask.Timeout = o.Timeout
		c.served.client, m.err = discovery.NewDiscoveryClientForConfig(ask)
	}
	if m.err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, m.err)
	}
	c.speaking.init(o.Log, c.write)
	return c, nil
}

// maker makes clients until something goes wrong. They share their connections, as
// client-go does where credentials are the same.
type maker struct {
	base    *rest.Config
	options Options
	err     error
}

// limited is a configuration with a rate limiter of its own, which all clients made
// with it share.
func (m *maker) limited() *rest.Config {
	c := rest.CopyConfig(m.base)
	c.QPS, c.Burst, c.Timeout = m.options.QPS, m.options.Burst, m.options.Timeout
	if c.QPS > 0 {
		c.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(c.QPS, c.Burst)
	}
	return c
}

// unlimited is a configuration for lists and watches, which last.
func (m *maker) unlimited() *rest.Config {
	c := rest.CopyConfig(m.base)
	c.QPS, c.RateLimiter, c.Timeout = -1, nil, 0
	return c
}

func (m *maker) client(config *rest.Config, gv schema.GroupVersion, content string) rest.Interface {
	if m.err != nil {
		return nil
	}
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &gv, "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.ContentType, c.AcceptContentTypes = content, content
	if content != inJSON {
		c.AcceptContentTypes += "," + inJSON // as errors of proxies are
	}
	client, err := rest.RESTClientFor(c)
	m.err = err
	return client
}

// send makes a write that answers with nothing of interest.
func send(ctx context.Context, r *rest.Request) error { return r.Do(ctx).Error() }
