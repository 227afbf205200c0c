// Sorts and filters pictures, enlarges them, sorts tables, copies commands. The page reads well without it. Text is only ever set as text.
(() => {
  'use strict';
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (name, set = {}, ...inside) => { const e = Object.assign(document.createElement(name), set); e.append(...inside); return e; };

  // Small pictures keep sharp pixels.
  for (const img of all('.look img')) {
    const sharp = () => img.classList.toggle('pixels', Math.max(img.naturalWidth, img.naturalHeight) <= 64);
    if (img.complete) sharp(); else img.addEventListener('load', sharp);
  }

  // Filters and order of a gallery, from what its cards say of themselves.
  const facets = { run: 'Run', kind: 'Group', class: 'Class', bias: 'Bias', result: 'Result' };
  for (const gallery of all('.gallery')) {
    const cards = all('.card', gallery), tools = make('div', { className: 'tools' }), chosen = {};
    if (cards.length < 2) continue;
    const count = make('p', { className: 'soft' }); count.setAttribute('role', 'status');
    const select = (label, options, change) => {
      const box = make('select'); for (const [value, text] of options) box.append(make('option', { value, textContent: text }));
      box.addEventListener('change', () => change(box.value)); tools.append(make('label', {}, label, box));
    };
    const more = make('button', { type: 'button', textContent: 'Show all' }); let most = 24;
    const update = () => {
      let fit = 0;
      for (const card of all('.card', gallery)) { card.hidden = Object.entries(chosen).some(([k, v]) => v && card.dataset[k] !== v) || ++fit > most; }
      more.hidden = fit <= most; count.textContent = `${Math.min(fit, most)} of ${cards.length} pictures`;
    };
    more.addEventListener('click', () => { most = Infinity; update(); });
    for (const [key, label] of Object.entries(facets)) {
      const values = [...new Set(cards.map(c => c.dataset[key] || ''))].filter(Boolean);
      if (values.length > 1) select(label, [['', 'all'], ...values.map(v => [v, v])], v => { chosen[key] = v; update(); });
    }
    const orders = [['', 'as given'], ['name', 'name']];
    if (cards.some(c => c.dataset.score)) orders.push(['high', 'highest score'], ['low', 'lowest score']);
    select('Order', orders, order => {
      const score = c => Number(c.dataset.score || 'NaN'), place = c => cards.indexOf(c);
      const rule = { '': (a, b) => place(a) - place(b), name: (a, b) => a.dataset.name.localeCompare(b.dataset.name, undefined, { numeric: true }),
        high: (a, b) => score(b) - score(a), low: (a, b) => score(a) - score(b) }[order];
      for (const card of [...cards].sort(rule)) card.parentNode.append(card);
      update();
    });
    tools.append(count); gallery.prepend(tools); gallery.append(more); update();
  }

  // A picture, large, with all that is known of it. Escape closes, arrows go on.
  const large = document.getElementById('large');
  if (large) {
    const picture = large.querySelector('.picture'), facts = large.querySelector('dl'), title = large.querySelector('.bar p'), map = large.querySelector('.where-it-looks');
    let group = [], at = 0, looking = false;
    const show = () => {
      const card = group[at], pictures = all('.look img', card), seen = pictures[1] && looking ? pictures[1] : pictures[0];
      picture.replaceChildren(seen ? make('img', { src: seen.src, alt: pictures[0].alt, className: pictures[0].className }) : 'This row cannot be shown.');
      title.textContent = `${card.dataset.name} (${at + 1} of ${group.length})`;
      map.hidden = !pictures[1]; map.setAttribute('aria-pressed', looking);
      facts.replaceChildren(...all('[data-fact]', card).flatMap(f => [make('dt', { textContent: f.dataset.fact }), make('dd', { textContent: f.dataset.value || f.textContent })]));
    };
    const go = by => { at = (at + by + group.length) % group.length; show(); };
    document.addEventListener('click', event => {
      const look = event.target.closest('.look');
      if (!look) return;
      const card = look.closest('.card');
      group = all('.card', card.parentNode).filter(c => !c.hidden); at = group.indexOf(card); looking = false;
      show(); large.showModal();
    });
    large.querySelector('.before').addEventListener('click', () => go(-1));
    large.querySelector('.after').addEventListener('click', () => go(1));
    large.querySelector('.close').addEventListener('click', () => large.close());
    map.addEventListener('click', () => { looking = !looking; show(); });
    large.addEventListener('keydown', event => { if (event.key === 'ArrowLeft') go(-1); else if (event.key === 'ArrowRight') go(1); });
    large.addEventListener('click', event => { if (event.target === large) large.close(); });
  }

  // Tables whose head row can be clicked.
  for (const table of all('table.sortable')) {
    const body = table.tBodies[0], rows = [...body.rows].slice(1), heads = [...body.rows[0].cells];
    const value = (row, k) => { const text = (row.cells[k]?.firstChild?.textContent || '').trim(), number = parseFloat(text.replace(',', '')); return Number.isNaN(number) ? text : number; };
    heads.forEach((head, k) => {
      if (!head.textContent.trim()) return;
      const button = make('button', { type: 'button' }); button.append(...head.childNodes); head.append(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') !== 'descending', sign = down ? -1 : 1;
        heads.forEach(h => h.removeAttribute('aria-sort')); head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        rows.sort((a, b) => { const x = value(a, k), y = value(b, k);
          return typeof x === typeof y ? sign * (x > y ? 1 : x < y ? -1 : 0) : typeof x === 'number' ? -1 : 1; });
        body.append(...rows);
      });
    });
  }

  for (const pre of all('.run pre')) pre.replaceChildren(...pre.textContent.split(/( )/).map(w => w.startsWith('--') ? make('span', { className: 'option', textContent: w }) : w));
  if (navigator.clipboard) for (const run of all('.run')) {
    const button = make('button', { type: 'button', textContent: 'Copy' }); run.append(button);
    button.addEventListener('click', () => navigator.clipboard.writeText(run.querySelector('pre').textContent).then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Not copied'; }));
  }

  // Where the reader is, and folds that open for a link into them and for paper.
  const links = new Map(all('nav a').map(a => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver(seen => seen.forEach(s => {
    if (!s.isIntersecting) return;
    links.forEach(a => a.removeAttribute('aria-current')); links.get(s.target.id)?.setAttribute('aria-current', 'true');
  }), { rootMargin: '-10% 0px -80% 0px' });
  all('main > section[id]').forEach(s => watch.observe(s));
  const unfold = () => { for (let e = document.getElementById(location.hash.slice(1)); e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true; };
  addEventListener('hashchange', unfold); unfold();
  let folded = [];
  addEventListener('beforeprint', () => { folded = all('details:not([open]):not(.data)'); folded.forEach(d => { d.open = true; }); });
  addEventListener('afterprint', () => folded.forEach(d => { d.open = false; }));
})();
