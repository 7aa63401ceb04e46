package shadow

// Idle reports whether nothing waits to be followed.
func (s *Set) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting == 0
}
