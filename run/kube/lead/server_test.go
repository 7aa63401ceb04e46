package lead

import (
	"context"
	"errors"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

const (
	namespace = "muster-system"
	name      = "muster"
)

// server is client-go's fake clientset with what that lacks and an election lives
// from: a write of an old resourceVersion is refused.
type server struct {
	mu     sync.Mutex
	client *fake.Clientset
	seq    int64
	writes int
}

func newServer() *server { return &server{client: fake.NewClientset()} }

func (s *server) leases() coordination.LeaseInterface {
	return s.client.CoordinationV1().Leases(namespace)
}

func (s *server) stamp(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.seq++
	s.writes++
	l = l.DeepCopy()
	l.ResourceVersion = time.Unix(s.seq, 0).UTC().Format("150405")
	return l
}

func (s *server) create(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases().Create(context.Background(), s.stamp(l), metav1.CreateOptions{})
}

func (s *server) update(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, err := s.leases().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if was.ResourceVersion != l.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, name, errors.New("changed"))
	}
	return s.leases().Update(context.Background(), s.stamp(l), metav1.UpdateOptions{})
}

func (s *server) get() (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases().Get(context.Background(), name, metav1.GetOptions{})
}

func (s *server) delete() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases().Delete(context.Background(), name, metav1.DeleteOptions{})
}

// how is what happens to a request on its way.
type how int

const (
	well     how = iota
	refused      // does not reach the server
	hung         // neither reaches the server nor is answered
	unheard      // is carried out, and the answer is lost
	late         // is carried out, and answered after a second
	slow         // is carried out after a second
	howCount int = iota
)

var errNetwork = errors.New("connection refused")

// line is one client's line to the server. The methods that the election does not
// call are those of a nil interface.
type line struct {
	coordination.LeaseInterface
	server *server
	mu     sync.Mutex
	goes   how
}

func (l *line) Leases(string) coordination.LeaseInterface { return l }

func (l *line) set(h how) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goes = h
}

// send carries out one request.
func (l *line) send(ctx context.Context, call func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	goes := l.goes
	l.mu.Unlock()
	switch goes {
	case refused:
		return nil, errNetwork
	case hung:
		<-ctx.Done()
		return nil, ctx.Err()
	case unheard:
		if _, err := call(); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, ctx.Err()
	case late:
		got, err := call()
		time.Sleep(time.Second)
		return got, err
	case slow:
		time.Sleep(time.Second)
	}
	return call()
}

func (l *line) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.send(ctx, l.server.get)
}

func (l *line) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	return l.send(ctx, func() (*coordinationv1.Lease, error) { return l.server.create(lease) })
}

func (l *line) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	return l.send(ctx, func() (*coordinationv1.Lease, error) { return l.server.update(lease) })
}
