package manifest

import (
	"bytes"
	"errors"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"seatrial/fault"
)

// Bounds of a manifest. The YAML parser takes time that grows with the square of the number of keys
// and of the depth, and an alias can be repeated without end; none of that may cost a person more
// than a moment.
const (
	maxBytes = 1 << 20
	maxKeys  = 10_000
	maxItems = 100_000 // tokens before, nodes after aliases are expanded
	maxDepth = 64
)

type kind uint8

const (
	null kind = iota
	scalar
	mapping
	sequence
)

// node is a YAML value with aliases and merge keys resolved.
type node struct {
	kind   kind
	text   string // scalar: its value
	quoted bool   // scalar: quoted or a block, so that it is text whatever it looks like
	at     position
	fields []field // mapping, in order
	items  []*node // sequence
}

type field struct {
	key   string
	at    position
	value *node
}

// get finds a field by key.
func (n *node) get(key string) *field {
	for i := range n.fields {
		if n.fields[i].key == key {
			return &n.fields[i]
		}
	}
	return nil
}

// tree turns YAML into nodes.
type tree struct {
	src      source
	anchors  map[string]ast.Node
	open     map[string]bool // anchors being expanded: a second visit is a cycle
	count    int
	problems fault.List
}

// parseTree reads one YAML document whose top is a mapping. All problems that do not stop the parser
// are returned together.
func parseTree(src source) (*node, fault.List) {
	t := &tree{src: src, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	body := t.parse()
	if len(t.problems) > 0 {
		return nil, t.problems
	}
	if body == nil {
		return nil, fault.List{src.problem(fault.MAN002, position{}, "the manifest is empty").
			WithNext("Run `seatrial init` to write one.")}
	}
	root := t.convert(body, 0)
	if root.kind != mapping && len(t.problems) == 0 {
		t.problem(root.at, "the manifest must be a mapping of keys to values")
	}
	return root, t.problems
}

func (t *tree) problem(at position, format string, args ...any) {
	t.problems = append(t.problems, t.src.problem(fault.MAN002, at, format, args...))
}

// parse checks the bounds and runs the YAML parser; nil without a problem is an empty document. The
// parser belongs to others, so that a defect of it must not end the program.
func (t *tree) parse() (body ast.Node) {
	defer func() {
		if r := recover(); r != nil {
			body = nil
			t.problem(position{}, "it is not valid YAML, and the YAML parser cannot say where")
		}
	}()
	if at, ok := badText(t.src.text); ok {
		t.problem(at, "the manifest must be UTF-8 text without control characters")
		return nil
	}
	if bytes.Count([]byte(t.src.text), []byte("\n")) > maxItems {
		t.problem(position{}, "the manifest has more than %d lines", maxItems)
		return nil
	}
	tokens := lexer.Tokenize(t.src.text)
	if !t.bounded(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		t.syntax(err)
		return nil
	}
	return t.document(file)
}

// syntax turns the parser's error into a problem.
func (t *tree) syntax(err error) {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		t.problem(place(e.GetToken()), "%s", e.GetMessage())
		return
	}
	t.problem(position{}, "it is not valid YAML")
}

// document gives the only document of a file; directives are no document.
func (t *tree) document(file *ast.File) ast.Node {
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if body != nil {
			t.problem(place(doc.Body.GetToken()), "a second YAML document begins here; a manifest is one document")
			return nil
		}
		body = doc.Body
	}
	return body
}

// bounded refuses what would cost the parser too much.
func (t *tree) bounded(tokens token.Tokens) bool {
	depth, keys, entries, line := 0, 0, 0, 0
	for i, tk := range tokens {
		if tk.Position.Line != line {
			line, entries = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.MappingValueType:
			keys++
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			entries++
		}
		if depth+entries > maxDepth && tk.Type != token.CollectEntryType {
			t.problem(place(tk), "values are nested more than %d deep", maxDepth)
			return false
		}
		if keys > maxKeys || i > maxItems {
			t.problem(place(tk), "the manifest holds more than %d keys or %d values", maxKeys, maxItems)
			return false
		}
	}
	return true
}

// badText finds the first byte that no manifest should hold.
func badText(text string) (position, bool) {
	line, column := 1, 0
	for i, r := range text {
		column++
		if r == '\n' {
			line, column = line+1, 0
			continue
		}
		invalid := false
		if r == utf8.RuneError {
			_, n := utf8.DecodeRuneInString(text[i:])
			invalid = n == 1
		}
		if invalid || (r < 0x20 && r != '\t' && r != '\r') || r == 0x7f {
			return position{line: line, column: column}, true
		}
	}
	return position{}, false
}

// place gives a token's position.
func place(tk *token.Token) position {
	if tk == nil || tk.Position == nil {
		return position{}
	}
	return position{line: tk.Position.Line, column: max(tk.Position.Column, 1)}
}

// convert resolves anchors, aliases and merges. It never returns nil.
func (t *tree) convert(n ast.Node, depth int) *node {
	if n == nil {
		return &node{}
	}
	at := place(n.GetToken())
	if t.count++; t.count > maxItems || depth > maxDepth {
		if t.count == maxItems+1 || depth == maxDepth+1 {
			t.problem(at, "the manifest is too large once its aliases are written out, or nested more than %d deep", maxDepth)
		}
		t.count = max(t.count, maxItems+1)
		return &node{at: at}
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return t.mapping(v.Values, depth)
	case *ast.MappingValueNode:
		return t.mapping([]*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		out := &node{kind: sequence, at: at}
		for _, item := range v.Values {
			out.items = append(out.items, t.convert(item, depth+1))
		}
		return out
	case *ast.AnchorNode:
		if v.Name != nil {
			t.anchors[v.Name.GetToken().Value] = v.Value
		}
		return t.convert(v.Value, depth+1)
	case *ast.AliasNode:
		return t.alias(v, at, depth)
	case *ast.TagNode:
		return t.tagged(v, at, depth)
	case *ast.NullNode:
		return &node{at: at}
	case *ast.LiteralNode:
		return &node{kind: scalar, text: v.Value.Value, quoted: true, at: at}
	case *ast.StringNode:
		quoted := v.Token.Type == token.SingleQuoteType || v.Token.Type == token.DoubleQuoteType
		return &node{kind: scalar, text: v.Value, quoted: quoted, at: at}
	default:
		return &node{kind: scalar, text: n.GetToken().Value, at: at}
	}
}

// alias expands *name. The value keeps the position of the anchor, where it is written.
func (t *tree) alias(v *ast.AliasNode, at position, depth int) *node {
	name := ""
	if v.Value != nil {
		name = v.Value.GetToken().Value
	}
	target, ok := t.anchors[name]
	switch {
	case !ok:
		t.problem(at, "*%s names no anchor above it", name)
	case t.open[name]:
		t.problem(at, "*%s stands inside its own anchor", name)
	default:
		t.open[name] = true
		defer delete(t.open, name)
		return t.convert(target, depth+1)
	}
	return &node{at: at}
}

// tagged accepts the tags that only say what a plain reading would find anyway, and !!str.
func (t *tree) tagged(v *ast.TagNode, at position, depth int) *node {
	out := t.convert(v.Value, depth+1)
	switch v.GetToken().Value {
	case "!!str":
		out.quoted = out.kind == scalar
	case "!!int", "!!float", "!!bool", "!!map", "!!seq":
	default:
		t.problem(at, "the tag %s is not used in a manifest", v.GetToken().Value)
	}
	return out
}

// mapping converts keys in order, merges last, and refuses a key that stands twice.
func (t *tree) mapping(values []*ast.MappingValueNode, depth int) *node {
	out := &node{kind: mapping}
	var merges []ast.Node
	for i, v := range values {
		at := place(v.Key.GetToken())
		if k, ok := v.Key.(*ast.MappingKeyNode); ok && k.Value != nil {
			at = place(k.Value.GetToken())
		}
		if i == 0 {
			out.at = at
		}
		if v.Key.IsMergeKey() {
			merges = append(merges, v.Value)
			continue
		}
		key := t.convert(keyNode(v.Key), depth+1)
		if key.kind != scalar && key.kind != null {
			t.problem(at, "a key must be a single word")
			continue
		}
		if first := out.get(key.text); first != nil {
			t.problem(at, "the key %s stands twice; the first is on line %d", key.text, first.at.line)
			continue
		}
		out.fields = append(out.fields, field{key: key.text, at: at, value: t.convert(v.Value, depth+1)})
	}
	for _, m := range merges {
		t.merge(out, m, depth)
	}
	return out
}

func keyNode(k ast.MapKeyNode) ast.Node {
	if explicit, ok := k.(*ast.MappingKeyNode); ok {
		return explicit.Value
	}
	return k
}

// merge adds the fields of << that the mapping does not set itself; of several, the first wins.
func (t *tree) merge(into *node, value ast.Node, depth int) {
	from := t.convert(value, depth+1)
	parts := []*node{from}
	if from.kind == sequence {
		parts = from.items
	}
	for _, part := range parts {
		if part.kind != mapping {
			if len(t.problems) == 0 {
				t.problem(place(value.GetToken()), "<< must name a mapping or a list of mappings")
			}
			return
		}
		for _, f := range part.fields {
			if into.get(f.key) == nil {
				into.fields = append(into.fields, f)
			}
		}
	}
}
