package plan

type requests struct{}
