{{- /* What is searched: of each section of each page its page, its heading and its text. */ -}}
{{- $all := slice -}}
{{- range partialCached "parts.html" . }}{{ range .pages }}
  {{- $e := . -}}
  {{- range after 1 (split (.page.Content | replaceRE `<h([1-6] id=)` "<§$1") "<§") -}}
    {{- with findRESubmatch `(?s)^[1-6] id="([^"]*)">(.*?)(?: <a class="anchor".*?)?</h[1-6]>(.*)$` . -}}
      {{- with index . 0 -}}
        {{- $text := index . 3 | replaceRE `</t[dh]>|<br>|</li>` " " | plainify | htmlUnescape | replaceRE `\s+` " " -}}
        {{- $all = $all | append (dict "page" (path.Base $e.page.RelPermalink) "anchor" (index . 1) "name" ($e.name | markdownify | plainify | htmlUnescape) "heading" (index . 2 | plainify | htmlUnescape) "text" $text) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end }}{{ end -}}
found({{ $all | jsonify }});
