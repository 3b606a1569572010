"""Decodes a file's text: Unicode, what it declares itself, or Korean by the syllables that it has."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import Final, NamedTuple

UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Characters of no text; nearly every binary file has one of them.
CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
MARK: Final = "\ufffd"
_BAD_BYTES: Final = re.compile("[\udc80-\udcff]+")
# A character's bytes that a cut through it leaves at the beginning and the end.
_CUT: Final = re.compile("\\A[\udc80-\udcbf]{1,3}|[\udcc2-\udcf4][\udc80-\udcbf]{0,2}\\Z")
_MULTIBYTE: Final = re.compile("[\x80-\ud7ff\ue000-\U0010ffff]")
_LONG: Final = re.compile("[\u0800-\ud7ff\ue000-\U0010ffff]")  # of three bytes and more
_BYTES_PER_BAD: Final = 1_000
_CHARS_PER_BAD: Final = 10

# In the head of XML, HTML, CSS and Python files.
_DECLARATION: Final = re.compile(rb"(?:charset|coding)[\"'\s:=]{1,5}([a-z][\w.-]{1,30})", re.IGNORECASE)
_DECLARED_WITHIN_BYTES: Final = 1_024
_SUPERSETS: Final = {
    **dict.fromkeys(("euc_kr", "cp949"), "cp949"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("shift_jis", "cp932"), "cp932"),
    **dict.fromkeys(("iso8859-1", "cp1252"), "cp1252"),
    **{name: name for name in ("big5", "euc_jp", "johab")},
}

# The most frequent syllables of Korean and characters of Chinese, in their order. The same bytes are Hangul in CP949
# and Chinese in GB18030, but everyday words of one are hardly ever everyday words of the other.
_SYLLABLES: Final = (
    "이다는에하고가을지의로서은아한어도기사니있를나해리시그요인들자일게대라으스수만보제면정주전부여거과장했상안마구었데오야내원우신적것성국되세위와무할동생소트드모미진문중말화공까러비습간없분조저입개터유계치월같경회선년때연실바음관용더명학네영교당작좋방려않합래발건된단재며각운금람행남물알차등통번르던두타후프겠체크랑식히너산역버임호포예결반잘님함심속업본레파직디감처런카못노았군받배매출양표피살든현많른법달난집민설였최형또불력키천걸강날울테싶청루종언약애코점워토추준께질외근태올참격렇름친초늘권온린따록목복새료편능열판별맞변메머티항필왜술누절확느특먹줄평씨럼브길급란돌박증송손뭐죽독죠좀즈론활막찾존곳될순환페품투얼향냐석봐및잡병광왔혼담져엔족볼짜글령책플녀완승축베육립총갈망쪽색백악북접앞긴커험끝쓰빠블류범침됐검힘응림김황희눈엄냥벌련창억움패겨클졌충뒤채릴케째셨왕첫견놓규협츠취렸끼션슨답럽뉴삼퍼폭획락써착찰큰돼팀잠밀닌돈량극봤쳐택랜뿐밤귀몇몰넘먼떤십놀쟁둘탄났줘떻허셔죄밖철얘쿠떠램캐갖굴갔탈듯혹뜻높몸잖슬센곡널켜링싸빨싫측릭웃갑홍농틀떨골쉬넷념득탁맛혀팔찬홈꺼깨녕꾸례휴효벽듣폰풀얻찮징엘뭔찍논짓괜익"
    "텐믿암욕읽큼맨꿈즐꼭웨쇼넣벤붙콘봉풍숨팅숙솔층앨염델궁컴멋슈액척괴압맡밝겁률템폐곤앙빈덕됩율뮤싱딸잔렌옷뛰겼끌빌헤콜텔삶빛컬퇴흥랐헌냈쳤객칠혁훈엇좌롭씀컨즘즉멀씩맥턴늦꽃롯낮칭웠룹팬젠낸쉽털놈혈픽럴킹벨닥킨쁜딱핵낌빼걱균똑웹줬촬짐킬흔퓨몬쁘앉칼곧쓸홀땅샤뷰캠쯤칙앤므픈섹끔잊졸옥짝랍푸닐튼혜랙밥딩낼략녹옆녁즌핑흐폴랬벗깐탕맘잃쩌섬뭘뜨탑춘슴멤탐깊튜꼬켰밌윤묻켓촌휘렉콩쥐됨끄셀겸틴섭렴슷섯촉찌뇌납혔핀닉껴럭넌릿롤욱닝낙뷔쓴컵셋짧톤랄춰렵떡잭춤쇄둥빅윈젊힌젝옛멘큐흘멍밍맹잇닙땐렀앱봄흡쌍값겪칸맙셜듀묘빙씬끊펜융뢰옮틱밴갤겐둔흑깔랫둑밑텍헬왼낫첨냄뀌샘댄뻔멸덜챙엉닫잉삭힐몽롱굉젤냉넓썼꽤숲걷덩떼톡훨샵엑뽑훌봅웅쿄꾼랭뿌딜옵셈튀쏘혐멜룸팩팝낳딘챔싼빵믹봇묵핸붕폼덴콤멈깜앗덤륭쌓끈펴켄꼴윌샌쩔엽딴엠븐쾌돕랩숫놔륙헨덮깝룩캔듬렬탓꿔굳닷곱펼쿨낭롬읍뒷톱뻐맺뱅줌끗괄묶흰뇨걔캘컷퀴얀짱꿀곁댓띠뱀눌옹픔렛룰룬톰껏쫓닮쟤닭닿똥젖햇릎넥셉틸뚫낄빗쌀꼈잎윙숭릉쏟멕캡벼쇠씻눔첩릇탠붉닛눠엿섰핫띄흠뤄겹꼽곰룡놨탱잤뚜깃윗섞굿밟삽돔늑좁옳긍햄툰닦틈벅듭낯펀녔낀갱둠뼈뚱흉앵좆꽉빚셰곽왠헛샀쥬웬펙펠넬퀘칩팡퀸릅톨땀갓렘킷"
)
_CHINESE: Final = (
    "的是一在不人有了我国这为中个大会们他来和年上以要到时对么能你就发可地生家出也说于学后成与过行用日多自现都没作下得开经还法动好方而公子事分之民主里政看吗本月所天新业同全定部最其进如前机美那当工关实小被但因长样理等什道去些面很心间区内电然力起体只着从并者高加想文问种员重及点将意合产三外由市无女已制网第情场名应西代正表真此位题相明资计建利系化期特性度果次给让两通教任比该东活手世提或使她物数立认怎知结入更总务话斯统目社展战做设安别信影己受解军司回把保平常见向海变报治台爱品北何接界论组件权选府议少它共运车至记又原金身式老路决科联视口处各持站量交万直反南打据基始再快水门十感程导传院才放今术强元完号图规改管划亚领际单头二尔需布达队片求非历每书指马广党几太先带游城办球色觉义级师专类约集告技团取儿参克史服格候调包请德必拉乐许造确气难吧收证称语山死线示条像流命根则近济京听英士价推标举争友干支委四续况准形男望官且走失言备容观华港质案钱查整未费空转较众神商风校字香啊首州料育创织却照亲识消研离具算欢哪型注源护连节周即投获音清增供五孩光项张息白构省律声演农究器边步喜局医象写除境思赛装谁跟便杀击响职助易版希属住洲巴"
    "星企引找试考列罗存须越态群县功纪复超害戏显族维深责值买足环模极协花断客警吃王百段验切往早终另远够独精习营括革岁曾评随例黑错继米林预玩故份速闻效致火妈阿呢拿兰采热房病户限艺严仅录江势控察满优兴绝土施宣武止负尼谢食简叫欧画古母低帮留积志虽朋否令读伤夫眼置播底域频派居监飞晚策卡尽刚讲苏股谈送诉河密落半念剧村依湾印哥破编待初双防普围批愿红轻承青免室范修压石状排率险福父适担六角层判卫财占园络奖阳执假席仍突测班旅升配停似笑审歌般铁换银均千养博威富微黄移罪票岛择奇紧韩久抗汉副犯亿波乎八款甚检馆油著差斗销购救坚讨庭镇药景店章陆介益纳朝宝俄述央素哈脑拍互乡按坏兵怕核善酒激细拥街卖载钟临享释背婚伊血充货您龙攻降射恶危略败奥弹付帝毛刻某减冲输永媒秘遇靠答座典码征访筑短析训胜疗温弟异阶劳退穿束倒七航姐夜云厂疑词九藏毒额左楼牌补杂亡康材健练盟妇沙届课乱软板索追湖暴融登售困圣授误梦缺督操味顾页遗礼签遭枪私牙吸础毕封币宗露讯稳宁辑恐托努曲李块爆灵守余右怀亦伦季烈衣舞皇草坐若扩幸逐序迎址竟午妹禁肯澳搞脸鲜亮苦船概贵附趣摄库跑鱼轮顿翻良旧狗急寻套综掉顺童迫庆丽木春吉脱竞虑架呼端违含皮堂怪尚抓汽挥归骗诺肉招探培睡献针饭敢"
    "野惊透避智痛既啦牛税洋谓敌申巨慢炸忘句渐唯损弃彩阅散绍漫洛休塔伯厅冷染召佛诗鲁刑雷笔萨汇楚延松予坦妻裁丰促脚贝森唱译启树赢幕爸贸障泽熟混蒙固宪毁勒顶侵丝餐静赶篇懂闭纸浪荣醒夏借桥订陈灭绿迷暗援尤宫盖谋聚塞雨尊秀拜盘贴估挑屋恩田嘛泰赞逃绩乌喝阻川涉捕震鼓兄蛋植床距佳键鸡洗狱途魔雄奶哦邦卷励末跳替链搜伙纽夺灾岸废刺弱烟兼麻旗署瓦狂遍辆莱忙驻麦残莫逼触姆拒符隐籍盛描册娘沉徒丹坛津冠掌胡毫宾抵婆冰迹祖伴污"
)
_SYLLABLE_WEIGHT: Final = {sign: len(_SYLLABLES) - rank for rank, sign in enumerate(_SYLLABLES)}
_CHINESE_WEIGHT: Final = {sign: len(_CHINESE) - rank for rank, sign in enumerate(_CHINESE)}
_EVERYDAY_SHARE: Final = 0.6
_HANGUL: Final = re.compile("[가-힣]")
# As in `ㅋㅋㅋ`, `ㅇㅋ`, `ㄱ)`; kana of EUC-JP are such letters in CP949, too, but in longer words.
_JAMO: Final = re.compile(
    r"([ㄱ-ㅣ]{1,2})\1+|(?<![^\x00-\x7f])(?:[ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ]{1,3}|[ㅏ-ㅣ])(?![^\x00-\x7f])"
)
_FULL_WIDTH: Final = re.compile("[\uff00-\uffef]")
# Two accented letters of a Western word, such as `ÇÃ` in "AÇÃO", are the bytes of one syllable.
_WESTERN: Final = re.compile(rb"(?<=[A-Za-z])[\xc0-\xff]{2}(?![\x80-\xff])|(?<![\x80-\xff])[\xc0-\xff]{2}(?=[A-Za-z])")


class Decoded(NamedTuple):
    """A text, and in how many places bytes were replaced by U+FFFD."""

    text: str
    bad_count: int


def decode(data: bytes) -> Decoded | None:
    """Decodes UTF-8, UTF-16 with a byte order mark, a declared encoding, or CP949, a superset of EUC-KR.

    UTF-8 and CP949 may have a wrong byte here and there, and characters cut in two at both ends.

    Returns:
        None for any other encoding and for binary data.
    """
    if data.startswith(UTF_16):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            return None
        return Decoded(text, 0) if "\0" not in text else None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if (declared := _as_declared(data)) is not None:
            return declared
        korean = _as_korean(data)
        return korean if korean and not korean.bad_count else _as_damaged(data) or korean
    return Decoded(text, 0) if "\0" not in text else None


def _as_declared(data: bytes) -> Decoded | None:
    found = _DECLARATION.search(data[:_DECLARED_WITHIN_BYTES])
    name = found[1].decode("ascii", "replace").lower() if found else ""
    try:
        codec = "cp949" if name.endswith("949") else _SUPERSETS.get(codecs.lookup(name).name)
    except (LookupError, ValueError):
        codec = None
    if codec is None:
        return None
    text = data.decode(codec, "replace")
    bad = text.count(MARK)
    return None if CONTROL.search(text) or bad * _CHARS_PER_BAD > len(_MULTIBYTE.findall(text)) else Decoded(text, bad)


def _as_korean(data: bytes) -> Decoded | None:
    """Decodes CP949 if most letters that aren't ASCII are everyday syllables, and more so than everyday Chinese."""
    text = data.decode("cp949", "replace")
    bad = text.count(MARK)
    if CONTROL.search(text):
        return None
    signs = Counter(_MULTIBYTE.findall(text))
    letters = sum(count for sign, count in signs.items() if sign.isalpha() and not _FULL_WIDTH.match(sign))
    hangul = sum(count for sign, count in signs.items() if _HANGUL.match(sign))
    jamo = sum(len(found[0]) for found in _JAMO.finditer(text))
    everyday = jamo + sum(count for sign, count in signs.items() if sign in _SYLLABLE_WEIGHT)
    if everyday < max(_EVERYDAY_SHARE * letters, 1, _CHARS_PER_BAD * bad):
        return None
    if len(_WESTERN.findall(data)) * 2 > hangul:
        return None
    chinese = Counter(data.decode("gb18030", "ignore"))
    korean_weight = sum(_SYLLABLE_WEIGHT.get(sign, 0) * count for sign, count in signs.items()) + jamo * len(_SYLLABLES)
    chinese_weight = sum(_CHINESE_WEIGHT.get(sign, 0) * count for sign, count in chinese.items())
    return Decoded(text, bad) if korean_weight > chinese_weight else None


def _as_damaged(data: bytes) -> Decoded | None:
    """Decodes UTF-8 with few wrong bytes, which become U+FFFD."""
    text = data.decode("utf-8-sig", "surrogateescape")
    if CONTROL.search(text):
        return None
    runs = list(_BAD_BYTES.finditer(text))
    count = len(_MULTIBYTE.findall(text))
    # Cuts at the ends are expected; but a character of two bytes proves little, as it may be one of CP949 or GBK.
    cuts = {cut.span() for cut in _CUT.finditer(text)} if _LONG.search(text) else set()
    wrong = len({run.span() for run in runs} - cuts)
    is_text = count >= _CHARS_PER_BAD * wrong if count else len(data) >= _BYTES_PER_BAD * len(runs)
    return Decoded(_BAD_BYTES.sub(MARK, text), len(runs)) if is_text else None
