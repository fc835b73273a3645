package main

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Sizes of the shop. Everything is bounded: a load run of any length leaves its memory flat.
const (
	products     = 500
	pageSize     = 20
	orderSlots   = 10_000 // the newest orders; older ones are forgotten
	seededOrders = 1_000  // orders that exist from the start
	cartSlots    = 4_096
	cartItems    = 50
	bodyLimit    = 1 << 20
)

// discontinued products answer 404: one in seventeen, as in the shop whose traces are bundled.
func discontinued(id int) bool { return id%17 == 0 }

// Product is one article of the catalogue.
type Product struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Cents    int    `json:"price_cents"`
	Stock    int    `json:"stock"`
}

// Order is one order.
type Order struct {
	ID        int    `json:"id"`
	ProductID int    `json:"product_id"`
	Quantity  int    `json:"quantity"`
	State     string `json:"state"` // placed, cancelled
}

// shop is the state of the shop. The catalogue never changes; orders and carts are behind mu.
type shop struct {
	catalogue []Product // index 0 is product 1

	mu     sync.Mutex
	orders []Order // ring: order id lives at id % orderSlots
	lastID int
	carts  map[string][]int // product ids by cart
	queue  []string         // cart ids, oldest first, at most cartSlots
}

// newShop makes the same shop each time.
func newShop() *shop {
	kinds := []string{"shackle", "halyard", "fender", "cleat", "anchor", "lantern", "sextant", "bilge pump", "oilskin", "tar"}
	makes := []string{"bronze", "galvanised", "hemp", "brass", "oak", "storm", "deck", "harbour"}
	s := &shop{
		catalogue: make([]Product, products),
		orders:    make([]Order, orderSlots),
		carts:     make(map[string][]int, cartSlots),
	}
	for i := range s.catalogue {
		h := mix64(uint64(i))
		s.catalogue[i] = Product{
			ID:       i + 1,
			Name:     makes[h%uint64(len(makes))] + " " + kinds[i%len(kinds)],
			Category: slug(kinds[i%len(kinds)]),
			Cents:    100 + int(h>>8%50_000),
			Stock:    int(h >> 32 % 200),
		}
	}
	for i := range seededOrders {
		s.place(1+i%products, 1+i%3)
	}
	return s
}

// slug is a name as a path segment.
func slug(name string) string { return strings.ReplaceAll(name, " ", "-") }

// place stores a new order; the oldest makes room.
func (s *shop) place(product, quantity int) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	o := Order{ID: s.lastID, ProductID: product, Quantity: quantity, State: "placed"}
	s.orders[o.ID%orderSlots] = o
	return o
}

// order finds an order and, when state is set, changes its state.
func (s *shop) order(id int, state string) (Order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 {
		return Order{}, false
	}
	o := &s.orders[id%orderSlots]
	if o.ID != id {
		return Order{}, false
	}
	if state != "" {
		o.State = state
	}
	return *o, true
}

// put lays a product into a cart, which is made when it is new; the oldest cart makes room.
func (s *shop) put(cart string, product int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, known := s.carts[cart]
	if !known {
		if len(s.queue) == cartSlots {
			delete(s.carts, s.queue[0])
			s.queue = slices.Delete(s.queue, 0, 1)
		}
		s.queue = append(s.queue, cart)
	}
	if len(items) < cartItems {
		items = append(items, product)
	}
	s.carts[cart] = items
	return len(items)
}

// product finds a product that is still sold.
func (s *shop) product(id string) (Product, bool) {
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 || n > len(s.catalogue) || discontinued(n) {
		return Product{}, false
	}
	return s.catalogue[n-1], true
}

// find lists at most pageSize products that keep tells to keep, from the given offset on.
func (s *shop) find(offset int, keep func(*Product) bool) []Product {
	found := make([]Product, 0, pageSize)
	for i := range s.catalogue {
		p := &s.catalogue[i]
		if discontinued(p.ID) || !keep(p) {
			continue
		}
		if offset > 0 {
			offset--
			continue
		}
		if found = append(found, *p); len(found) == pageSize {
			break
		}
	}
	return found
}

// route is one route of the shop.
type route struct {
	name   string // "METHOD /template", a pattern of http.ServeMux
	handle http.HandlerFunc
}

// routes is everything that the shop serves by itself.
func (s *shop) routes() []route {
	return []route{
		{"GET /{$}", page("text/html; charset=utf-8", "<!doctype html><title>Chandlery</title><h1>Chandlery</h1><p>Rope, tar and brass since 1812.\n")},
		{"GET /assets/{file}", page("text/css; charset=utf-8", "body{font:16px serif}\n")},
		{"GET /users/{id}/avatar.png", page("image/png", pixel())},
		{"GET /api/products", s.listProducts},
		{"GET /api/products/{id}", s.oneProduct},
		{"GET /api/categories/{slug}", s.category},
		{"GET /api/search", func(w http.ResponseWriter, r *http.Request) { s.search(w, r.URL.Query().Get("q")) }},
		{"POST /api/search", s.searchBody},
		{"POST /api/cart/{id}/items", s.addToCart},
		{"POST /api/orders", s.placeOrder},
		{"GET /api/orders/{id}", s.showOrder},
		{"DELETE /api/orders/{id}", s.cancelOrder},
		{"POST /api/payments/{action}", s.pay},
		{"GET /api/recommendations/{scope}/{strategy}", s.recommend},
		{"GET /api/report", s.report},
	}
}

// pixel is a PNG of one transparent pixel.
func pixel() string {
	var b strings.Builder
	_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 1, 1))) // a strings.Builder takes all
	return b.String()
}

// page answers with the same bytes each time.
func page(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	}
}

// reply writes v as JSON with its length.
func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // every v is a plain value of this file
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// refuse answers with an error document.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	reply(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

// decode reads a JSON body of at most bodyLimit into v. An empty body leaves v as it is: load
// generators replay routes, and a recorded route carries no body.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "the body cannot be read: %v", err)
		return false
	}
	if len(b) == 0 {
		return true
	}
	if err := json.Unmarshal(b, v); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that this route wants")
		return false
	}
	return true
}

func (s *shop) listProducts(w http.ResponseWriter, r *http.Request) {
	pageNo, _ := strconv.Atoi(r.URL.Query().Get("page")) // 0, the first page, when absent or wrong
	reply(w, http.StatusOK, s.find(min(max(pageNo, 0), products)*pageSize, func(*Product) bool { return true }))
}

func (s *shop) oneProduct(w http.ResponseWriter, r *http.Request) {
	p, ok := s.product(r.PathValue("id"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such product")
		return
	}
	reply(w, http.StatusOK, p)
}

func (s *shop) category(w http.ResponseWriter, r *http.Request) {
	want := r.PathValue("slug")
	found := s.find(0, func(p *Product) bool { return p.Category == want })
	if len(found) == 0 {
		refuse(w, http.StatusNotFound, "no such category")
		return
	}
	reply(w, http.StatusOK, found)
}

func (s *shop) search(w http.ResponseWriter, query string) {
	query = strings.ToLower(query)
	reply(w, http.StatusOK, s.find(0, func(p *Product) bool { return strings.Contains(p.Name, query) }))
}

func (s *shop) searchBody(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Query string `json:"q"`
	}
	if decode(w, r, &body) {
		s.search(w, body.Query)
	}
}

// choice is the body of routes that take a product. Without a body it is one piece of product 1.
type choice struct {
	ProductID int `json:"product_id"`
	Quantity  int `json:"quantity"`
}

// choose reads a choice and refuses one that cannot be met.
func (s *shop) choose(w http.ResponseWriter, r *http.Request) (choice, bool) {
	c := choice{ProductID: 1, Quantity: 1}
	if !decode(w, r, &c) {
		return c, false
	}
	if _, ok := s.product(strconv.Itoa(c.ProductID)); !ok || c.Quantity < 1 {
		refuse(w, http.StatusUnprocessableEntity, "no such product, or no quantity")
		return c, false
	}
	return c, true
}

func (s *shop) addToCart(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if len(id) > 64 {
		refuse(w, http.StatusBadRequest, "a cart id has at most 64 characters")
		return
	}
	if c, ok := s.choose(w, r); ok {
		reply(w, http.StatusCreated, map[string]int{"items": s.put(id, c.ProductID)})
	}
}

func (s *shop) placeOrder(w http.ResponseWriter, r *http.Request) {
	if c, ok := s.choose(w, r); ok {
		o := s.place(c.ProductID, c.Quantity)
		w.Header().Set("Location", fmt.Sprintf("/api/orders/%d", o.ID))
		reply(w, http.StatusCreated, o)
	}
}

func (s *shop) showOrder(w http.ResponseWriter, r *http.Request) { s.orderAs(w, r, "") }

func (s *shop) cancelOrder(w http.ResponseWriter, r *http.Request) { s.orderAs(w, r, "cancelled") }

func (s *shop) orderAs(w http.ResponseWriter, r *http.Request, state string) {
	id, _ := strconv.Atoi(r.PathValue("id")) // 0, which no order has, when it is no number
	o, ok := s.order(id, state)
	if !ok {
		refuse(w, http.StatusNotFound, "no such order")
		return
	}
	reply(w, http.StatusOK, o)
}

func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	switch r.PathValue("action") {
	case "charge", "refund":
		reply(w, http.StatusAccepted, map[string]string{"state": "accepted"})
	default:
		refuse(w, http.StatusNotFound, "no such payment action")
	}
}

// scopes and strategies span the 44 buckets of recommendations. The first six strategies start from a
// product (?product=ID, by default 1), the other five look at the whole shop.
func scopes() []string { return []string{"shop", "category", "port", "fleet"} }

const anchored = 6

func strategies() []string {
	return []string{
		"similar", "complements", "bought-together", "upgrade", "spare-parts", "same-maker",
		"popular", "trending", "new", "clearance", "seasonal",
	}
}

// recommendation is the answer of one bucket. Head names the published list that the items are of.
type recommendation struct {
	Scope    string    `json:"scope"`
	Strategy string    `json:"strategy"`
	Head     string    `json:"head"`
	Items    []Product `json:"items"`
}

func (s *shop) recommend(w http.ResponseWriter, r *http.Request) {
	scope, strategy := slices.Index(scopes(), r.PathValue("scope")), slices.Index(strategies(), r.PathValue("strategy"))
	if scope < 0 || strategy < 0 {
		refuse(w, http.StatusNotFound, "no such scope or strategy")
		return
	}
	anchor := 1
	if q := r.URL.Query().Get("product"); q != "" && strategy < anchored {
		p, ok := s.product(q)
		if !ok {
			refuse(w, http.StatusNotFound, "no such product")
			return
		}
		anchor = p.ID
	}
	bucket := uint64(scope*len(strategies()) + strategy)
	out := recommendation{
		Scope: r.PathValue("scope"), Strategy: r.PathValue("strategy"), Head: fmt.Sprintf("head-%02d", bucket),
	}
	for i := uint64(0); len(out.Items) < 6; i++ {
		id := 1 + int(mix64(bucket<<32|uint64(anchor)<<8|i)%products)
		if !discontinued(id) {
			out.Items = append(out.Items, s.catalogue[id-1])
		}
	}
	reply(w, http.StatusOK, out)
}

// report sums up the catalogue: the route with the most work behind it.
func (s *shop) report(w http.ResponseWriter, _ *http.Request) {
	type line struct {
		Category string `json:"category"`
		Products int    `json:"products"`
		Cents    int    `json:"stock_value_cents"`
	}
	byName := make(map[string]*line)
	for i := range s.catalogue {
		p := &s.catalogue[i]
		if byName[p.Category] == nil {
			byName[p.Category] = &line{Category: p.Category}
		}
		byName[p.Category].Products++
		byName[p.Category].Cents += p.Cents * p.Stock
	}
	lines := make([]line, 0, len(byName))
	for _, l := range byName {
		lines = append(lines, *l)
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.Category, b.Category) })
	reply(w, http.StatusOK, lines)
}
