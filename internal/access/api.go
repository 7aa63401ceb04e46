package access

// What the API answers about users, tokens and the audit log, and is asked.

// Whoami is what an identity is told of itself.
type Whoami struct {
	Name      string   `json:"name"`
	Role      Role     `json:"role"`
	Tenants   []string `json:"tenants,omitempty"` // "*" is all
	Queues    []string `json:"queues,omitempty"`
	Token     string   `json:"token,omitempty"` // its id
	ExpiresUs int64    `json:"expires_us,omitempty"`
}

// UserList is the answer to who there is.
type UserList struct {
	Users []User `json:"users"`
}

// ChangedUser is a user as it was added or changed.
type ChangedUser struct {
	User
	Warning string `json:"warning,omitempty"`
}

// TokenList is the answer to which tokens there are.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	User  string  `json:"user,omitempty"` // oneself where it is empty
	Note  string  `json:"note,omitempty"`
	LifeS float64 `json:"life_s,omitempty"` // 0 is UsualLife
}

// NewToken is a token, the one time that it is told.
type NewToken struct {
	Token
	Secret string `json:"secret"`
}

// AuditList is a part of the audit log.
type AuditList struct {
	Entries []Entry `json:"entries"`
}
